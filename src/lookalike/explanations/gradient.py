"""Maps that need nothing but a trunk and a head: SAM's attention, Grad-CAM of the cosine, and the mean of the maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.base.checks import require_known
from lookalike.explanations.explanation import Explanation
from lookalike.methods.diml.model import embed_with_map
from lookalike.methods.sam.attention import attention_maps
from lookalike.methods.sam.head import trunk_and_head
from lookalike.models.embedder import Embedder

ATTENTION, GRADIENT, CLASS_AGNOSTIC = "attention", "gradient", "class_agnostic"
Head = Callable[[Tensor], Tensor]  # feature maps to unit features


def by_attention(model: nn.Module, images: Tensor, layer: str | None = None) -> Explanation:
    """SAM's attention: that of pairs to their likeness, with negatives that of triplets; not negative, without a sum.

    Args:
        model: an ``Embedder``, trained with mining or in any other way; with a layer any network.
        images: ``(R, N, 3, H, W)`` of two or three roles.
        layer: name of the part whose maps are weighed, of a network that is no ``Embedder``.
    """
    kind = "triplet" if len(images) > 2 else "siamese_same"
    return _mapped(ATTENTION, model, images, layer, lambda maps, head: attention_maps(maps, head, kind))


def by_gradient(model: nn.Module, images: Tensor, layer: str | None = None) -> Explanation:
    """Grad-CAM of the cosine, with negatives of the margin by which the gallery image is closer; not negative.

    Args:
        model: an ``Embedder``; with a layer any network.
        images: ``(R, N, 3, H, W)`` of two or three roles.
        layer: name of the part whose maps are weighed, of a network that is no ``Embedder``.

    Source: Selvaraju et al., "Grad-CAM" (2017), Eq. 1 and 2, with the similarity in place of a class score.
    """

    def weighted(maps: Tensor, head: Head) -> Tensor:
        with torch.enable_grad():
            given = maps.detach().requires_grad_()
            unit = F.normalize(head(given.flatten(0, 1)), dim=1).view(*given.shape[:2], -1)  # (R, N, D)
            score = (unit[0] * unit[1]).sum() - ((unit[0] * unit[2]).sum() if len(unit) > 2 else 0)
            (gradient,) = torch.autograd.grad(score, given)
        weights = gradient.mean(dim=(-2, -1), keepdim=True)
        # What brings a negative closer lowers the margin: its map shows that.
        signs = weights.new_tensor([1.0, 1.0, -1.0][: len(maps)]).view(-1, 1, 1, 1, 1)
        return (signs * weights * maps).sum(dim=2).relu()

    return _mapped(GRADIENT, model, images, layer, weighted)


def by_mean_activation(model: nn.Module, images: Tensor, layer: str | None = None) -> Explanation:
    """Activation of each place: the mean over the channels; the partner does not count.

    Args:
        model: an ``Embedder``; with a layer any network.
        images: ``(R, N, 3, H, W)`` of two or three roles.
        layer: name of the part whose maps are weighed, of a network that is no ``Embedder``.

    Source: Selvaraju et al., "Grad-CAM" (2017), Eq. 2 with equal weights, so without a class or a partner; a control.
    """
    return _mapped(CLASS_AGNOSTIC, model, images, layer, lambda maps, head: maps.mean(dim=2))


def _mapped(
    method: str,
    model: nn.Module,
    images: Tensor,
    layer: str | None,
    mapped: Callable[[Tensor, Head], Tensor],
) -> Explanation:
    with torch.no_grad():
        feature_maps, head = _cut(model, images.flatten(0, 1), layer)
        unit = F.normalize(head(feature_maps).double(), dim=1).view(*images.shape[:2], -1)
    feature_maps = feature_maps.view(*images.shape[:2], *feature_maps.shape[1:])  # (R, N, C, h, w)
    maps = mapped(feature_maps, head).detach()
    return Explanation(method, "cosine", (unit[0] * unit[1]).sum(dim=1), tuple(maps.unbind(0)))


def _cut(model: nn.Module, images: Tensor, layer: str | None) -> tuple[Tensor, Head]:
    """Maps ``(N, C, h, w)`` of images ``(N, 3, H, W)``, and the head that makes unit features of such maps.

    Of a network that is known by the name of a layer only, the features of other maps are found by running it on the
    same images, with these maps in place of the layer's own.
    """
    if layer is None:
        trunk, head = trunk_and_head(cast(Embedder, model))
        return trunk(images), head
    require_known("layer", layer, (name for name, _ in model.named_modules() if name))
    _, feature_maps = embed_with_map(model, layer, images)
    part = model.get_submodule(layer)

    def features(maps: Tensor) -> Tensor:
        handle = part.register_forward_hook(lambda module, inputs, output: _with_last(output, maps))
        try:
            return F.normalize(model(images), dim=1)
        finally:
            handle.remove()

    return feature_maps, features


def _with_last(output: Any, maps: Tensor) -> Any:
    """Output of a layer with other maps in place of its last: it may give several, as a sequence or a mapping."""
    if isinstance(output, Mapping):
        return {**output, list(output)[-1]: maps}
    return maps if isinstance(output, Tensor) else [*output[:-1], maps]
