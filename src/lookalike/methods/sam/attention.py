"""Attention to the similarity of a tuple: Grad-CAM of a score that the tuple defines by a weight per dimension.

The map of an image changes with its partners. Its scale means nothing across tuples: ``soft_mask`` normalises it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd import grad

from lookalike.base.checks import require_known
from lookalike.methods.sam.head import LinearHead, UnitHead, at_least_float32, inverse_length, linear_features, unit
from lookalike.methods.sam.masks import soft_mask

__all__ = ["attention_maps", "similarity_weight", "soft_mask"]

Network = Callable[[Tensor], Tensor]

ROLES = {"siamese_same": 2, "siamese_different": 2, "triplet": 3, "quadruplet": 4}
READINGS = ("outer", "stop", "full")
SCORES = ("signed", "abs")
SCORED_FEATURES = ("unit", "raw")


def similarity_weight(features: Tensor, kind: str, *, clamp: bool = False) -> Tensor:
    """Weight of every embedding dimension: large where similar images agree and different ones do not.

    Args:
        features: ``(R, B, D)`` unit vectors; roles are anchor, positive, negatives (or the two of a pair).
        kind: ``siamese_same`` ``1 - |f1 - f2|``; ``siamese_different`` ``|f1 - f2|``; ``triplet``
            ``(1 - |fa - fp|) |fa - fn|``; ``quadruplet`` the same with one factor for each of two negatives.
        clamp: raise ``1 - |difference|``, which can reach -1, to 0. The paper does not.

    Returns:
        ``(B, D)``.

    Raises:
        ValueError: for an unknown kind, or features that do not fit it.

    Source: Visual Similarity Attention, section 3.
    """
    require_roles("features", features, kind, "D")
    anchor, other, *negatives = features.unbind()
    difference = (anchor - other).abs()  # (B, D)
    if kind == "siamese_different":
        return difference
    weight = (1 - difference).clamp_min(0) if clamp else 1 - difference
    for negative in negatives:
        weight = weight * (anchor - negative).abs()
    return weight


@dataclass(frozen=True)
class Score:
    """The number whose gradient is the attention, one per image: ``w . f``. Arguments of ``attention_maps``.

    Raises:
        ValueError: for an unknown kind or option.
    """

    kind: str
    reading: str = "outer"
    sign: str = "signed"
    features: str = "unit"
    clamp: bool = False

    def __post_init__(self) -> None:
        require_known("kind", self.kind, ROLES)
        require_known("reading", self.reading, READINGS)
        require_known("score", self.sign, SCORES)
        require_known("score_on", self.features, SCORED_FEATURES)

    def gradient(self, outputs: Tensor, create_graph: bool) -> Tensor:
        """Derivative ``(R, B, D)`` of each image's score by its own features.

        Args:
            outputs: ``(R, B, D)`` features, unit or raw as the field ``features`` says.
            create_graph: whether the derivative can be differentiated.
        """
        if self.reading == "full":
            return self._full_gradient(outputs, create_graph)
        weight = self._weight(outputs)  # (B, D)
        if self.reading == "stop":
            weight = weight.detach()
        return weight * outputs.sign() if self.sign == "abs" else weight.expand_as(outputs)

    def _full_gradient(self, outputs: Tensor, create_graph: bool) -> Tensor:
        with torch.enable_grad():
            if not outputs.requires_grad:
                outputs = outputs.detach().requires_grad_()
            scored = outputs.abs() if self.sign == "abs" else outputs  # (R, B, D)
            scores = (self._weight(outputs) * scored).sum(dim=(1, 2))  # (R,), the tuples do not meet
            # A score depends on the features of all roles through the weight; only those of its own image are wanted.
            of_own = [
                torch.autograd.grad(value, outputs, create_graph=create_graph, retain_graph=True)[0][role]
                for role, value in enumerate(scores)
            ]
            return torch.stack(of_own)

    def _weight(self, outputs: Tensor) -> Tensor:
        return similarity_weight(unit(outputs) if self.features == "raw" else outputs, self.kind, clamp=self.clamp)


def require_roles(name: str, tensor: Tensor, kind: str, rest: str) -> None:
    """Refuse a tensor that is not ``(R, B, <rest>)`` with the roles of the kind.

    Raises:
        ValueError: that says what is needed, also for an unknown kind.
    """
    require_known("kind", kind, ROLES)
    if tensor.ndim != 3 + rest.count(",") or len(tensor) != ROLES[kind]:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, {kind} needs ({ROLES[kind]}, B, {rest})")


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
    images = feature_maps.flatten(0, 1)  # (R B, C, H, W)
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


def _closed_form(
    feature_maps: Tensor, weight: Tensor, bias: Tensor | None, scoring: Score, create_graph: bool
) -> Tensor:
    # With g the pooled map, v = W g + b, f = v / |v| and u = ds / df channels count W^T (u - (u . f) f) / (|v| H W).
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
            # Normalisation lets through what is orthogonal to f: (u - (u . f) f) / |v|.
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
