"""Maps that need nothing but a trunk and a head: SAM's attention, Grad-CAM of the cosine, and the mean of the maps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.explanations.explanation import Explanation
from lookalike.methods.sam.attention import attention_maps
from lookalike.methods.sam.head import trunk_and_head
from lookalike.models.embedder import Embedder

ATTENTION, GRADIENT, CLASS_AGNOSTIC = "attention", "gradient", "class_agnostic"


def by_attention(embedder: Embedder, images: Tensor) -> Explanation:
    """SAM's attention: of pairs what makes them similar, with negatives that of triplets; not negative, without a sum.

    Args:
        embedder: trained with mining or in any other way.
        images: ``(R, N, 3, H, W)`` of two or three roles.
    """
    kind = "triplet" if len(images) > 2 else "siamese_same"
    return _mapped(ATTENTION, embedder, images, lambda maps, head: attention_maps(maps, head, kind))


def by_gradient(embedder: Embedder, images: Tensor) -> Explanation:
    """Grad-CAM of the cosine, with negatives of the margin by which the gallery image is closer; not negative.

    Args:
        embedder: any.
        images: ``(R, N, 3, H, W)`` of two or three roles.

    Source: Selvaraju et al., "Grad-CAM" (2017), Eq. 1 and 2, with the similarity in place of a class score.
    """

    def weighted(maps: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.enable_grad():
            given = maps.detach().requires_grad_()
            unit = F.normalize(head(given.flatten(0, 1)), dim=1).view(*given.shape[:2], -1)  # (R, N, D)
            score = (unit[0] * unit[1]).sum() - ((unit[0] * unit[2]).sum() if len(unit) > 2 else 0)
            (gradient,) = torch.autograd.grad(score, given)
        weights = gradient.mean(dim=(-2, -1), keepdim=True)
        # What brings a negative closer lowers the margin: its map shows that.
        signs = weights.new_tensor([1.0, 1.0, -1.0][: len(maps)]).view(-1, 1, 1, 1, 1)
        return (signs * weights * maps).sum(dim=2).relu()

    return _mapped(GRADIENT, embedder, images, weighted)


def by_mean_activation(embedder: Embedder, images: Tensor) -> Explanation:
    """How strongly each place is seen at all: the mean over the channels; the partner does not count.

    Args:
        embedder: any.
        images: ``(R, N, 3, H, W)`` of two or three roles.

    Source: Selvaraju et al., "Grad-CAM" (2017), Eq. 2 with equal weights, so without a class or a partner; a control.
    """
    return _mapped(CLASS_AGNOSTIC, embedder, images, lambda maps, head: maps.mean(dim=2))


def _mapped(
    method: str, embedder: Embedder, images: Tensor, mapped: Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]
) -> Explanation:
    trunk, head = trunk_and_head(embedder)
    with torch.no_grad():
        feature_maps = trunk(images.flatten(0, 1))
        unit = F.normalize(head(feature_maps).double(), dim=1).view(*images.shape[:2], -1)
    feature_maps = feature_maps.view(*images.shape[:2], *feature_maps.shape[1:])  # (R, N, C, h, w)
    maps = mapped(feature_maps, head).detach()
    return Explanation(method, "cosine", (unit[0] * unit[1]).sum(dim=1), tuple(maps.unbind(0)))
