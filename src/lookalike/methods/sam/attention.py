"""Where the images of a tuple are similar: Grad-CAM of a score that the whole tuple defines.

The map of an image changes with its partners. Its scale means nothing across tuples: ``soft_mask`` normalises it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import grad

from lookalike.methods.sam.head import LinearHead, UnitHead, at_least_float32, inverse_length, linear_features, unit
from lookalike.methods.sam.masks import soft_mask
from lookalike.methods.sam.weights import Network, Score, require_roles, similarity_weight

__all__ = ["attention_maps", "closed_form_maps", "similarity_weight", "soft_mask"]


def attention_maps(
    feature_maps: Tensor,
    head: Network,
    kind: str,
    *,
    reading: str = "outer",
    create_graph: bool = False,
    score: str = "signed",
    score_on: str = "unit",
    clamp: bool = False,
) -> Tensor:
    """Attention map of every image of every tuple.

    A ``LinearHead`` takes the closed form; for any other head there is one backward pass through it, of all roles at
    once. In ``full`` the score of one image depends on all others; those terms meet at the features, where they are
    formed role by role. So the head is passed once in every reading, which is exact as long as it treats each image by
    itself (batch norm in evaluation mode). Also under ``no_grad`` and in inference mode.

    Args:
        feature_maps: ``(R, B, C, H, W)``, after their ReLU.
        head: maps ``(R B, C, H, W)`` to unit features ``(R B, D)``, parameters in at least float32.
        kind: ``siamese_same``, ``siamese_different``, ``triplet`` or ``quadruplet``; gives R = 2, 2, 3 or 4.
        reading: what of the weight is differentiated. ``outer``: it is a constant inside the map, gradients of a
            training loss flow through it; ``stop``: a constant in both; ``full``: differentiated in both.
        create_graph: whether the maps can be differentiated; without it they are constants.
        score: ``signed`` for ``w . f``, ``abs`` for ``w . |f|``.
        score_on: ``unit`` features or ``raw`` ones, before normalisation (needs a ``UnitHead``).
        clamp: raise negative factors of the weight to 0, see ``similarity_weight``.

    Returns:
        ``(R, B, H, W)``, not negative, at least float32.

    Raises:
        ValueError: for an unknown option, maps that do not fit the kind, or a head that does not give one vector per
            image or, where raw features are asked for, is no ``UnitHead``.

    Source: Visual Similarity Attention, Eq. 1, reconstructed: the formula is missing in print, the text says Grad-CAM.
    Differs: the paper does not say whether the weight is a constant; the readings give different maps.
    """
    scoring = Score(kind, reading, score, score_on, clamp)
    if isinstance(head, LinearHead):
        return _closed_form(feature_maps, head.weight, head.bias, scoring, create_graph)
    if score_on == "raw" and not isinstance(head, UnitHead):
        raise ValueError(f"score_on='raw' needs a UnitHead, which has project(), not {type(head).__name__}")
    feature_maps = _checked(feature_maps, kind, create_graph)
    images = feature_maps.flatten(0, 1)
    # A call that is not differentiated works on maps cut from their graph, so it frees nothing that others need.
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(images.device.type, enabled=False):
        if not images.requires_grad:
            images = images.detach().requires_grad_()
        outputs: Tensor = head.project(images) if score_on == "raw" and isinstance(head, UnitHead) else head(images)
        if outputs.ndim != 2 or len(outputs) != len(images):
            raise ValueError(f"head returned shape {tuple(outputs.shape)}, it must be ({len(images)}, D)")
        direction = scoring.gradient(outputs.view(*feature_maps.shape[:2], outputs.shape[1]), create_graph)
        (gradient,) = grad(outputs, images, grad_outputs=direction.flatten(0, 1), create_graph=create_graph)
        channel_weights = gradient.mean(dim=(-2, -1)).view(feature_maps.shape[:3])  # alpha, (R, B, C)
        maps = _combine(channel_weights, images.view_as(feature_maps))
        return maps if create_graph else maps.detach()


def closed_form_maps(
    feature_maps: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kind: str,
    *,
    reading: str = "outer",
    create_graph: bool = False,
    score: str = "signed",
    score_on: str = "unit",
    clamp: bool = False,
) -> Tensor:
    """``attention_maps`` for a head of mean pooling, linear layer and L2 normalisation, without a backward pass.

    With ``g`` the pooled map, ``v = W g + b``, ``f = v / |v|`` and ``u = ds / df`` the channels count
    ``W^T (u - (u . f) f) / (|v| H W)``.

    Args:
        feature_maps: ``(R, B, C, H, W)``.
        weight: ``(D, C)`` of the linear layer.
        bias: ``(D,)``, or ``None``.
        kind: kind of the tuples: ``siamese_same``, ``siamese_different``, ``triplet`` or ``quadruplet``.
        reading: what of the weight is differentiated, ``outer``, ``stop`` or ``full``, as in ``attention_maps``.
        create_graph: whether the maps can be differentiated.
        score: ``signed``, or ``abs`` for the absolute value of each image's score.
        score_on: whether ``unit`` or ``raw`` features are scored.
        clamp: whether a weight below 0 counts as 0.

    Returns:
        ``(R, B, H, W)``, as ``attention_maps``.

    Raises:
        ValueError: for an unknown option, or shapes that do not belong together.
    """
    return _closed_form(feature_maps, weight, bias, Score(kind, reading, score, score_on, clamp), create_graph)


def _closed_form(
    feature_maps: Tensor, weight: Tensor, bias: Tensor | None, scoring: Score, create_graph: bool
) -> Tensor:
    feature_maps = _checked(feature_maps, scoring.kind, create_graph)
    _, _, channels, height, width = feature_maps.shape
    if weight.ndim != 2 or weight.shape[1] != channels:
        raise ValueError(f"weight has shape {tuple(weight.shape)}, it must be (D, {channels}) for these maps")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias has shape {tuple(bias.shape)}, it must be ({len(weight)},)")
    whole_precision = torch.autocast(feature_maps.device.type, enabled=False)
    with torch.inference_mode(False), torch.set_grad_enabled(create_graph), whole_precision:
        raw = linear_features(feature_maps.mean(dim=(-2, -1)), weight, bias)  # v, (R, B, D)
        if scoring.features == "raw":
            direction = scoring.gradient(raw, create_graph)
        else:
            features = unit(raw)
            outward = scoring.gradient(features, create_graph)  # u
            along = (outward * features).sum(dim=-1, keepdim=True)
            direction = (outward - along * features) * inverse_length(raw)
        channel_weights = direction @ weight.to(direction.dtype) / (height * width)  # alpha, (R, B, C)
        return _combine(channel_weights, feature_maps)


def _combine(channel_weights: Tensor, feature_maps: Tensor) -> Tensor:
    """``relu(sum_k alpha_k A_k)``, ``(R, B, H, W)``, of weights ``(R, B, C)`` and maps ``(R, B, C, H, W)``."""
    weighted = channel_weights[:, :, None] @ feature_maps.flatten(3).to(channel_weights.dtype)  # (R, B, 1, H W)
    return weighted.view(*feature_maps.shape[:2], *feature_maps.shape[3:]).relu()


def _checked(feature_maps: Tensor, kind: str, create_graph: bool) -> Tensor:
    """Feature maps in at least float32, cut from their graph if nothing is to be differentiated."""
    require_roles("feature_maps", feature_maps, kind, "C, H, W")
    if 0 in feature_maps.shape[2:]:
        raise ValueError(f"feature_maps have shape {tuple(feature_maps.shape)}, C, H and W must be at least 1")
    with torch.inference_mode(False):
        precise = (feature_maps if create_graph else feature_maps.detach()).to(at_least_float32(feature_maps))
        return precise.clone() if precise.is_inference() else precise
