"""How much each embedding dimension counts for a tuple, and the score of an image under that weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lookalike.checks import require_known
from lookalike.methods.sam.head import unit

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
    difference = (anchor - other).abs()
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
