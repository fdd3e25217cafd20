"""Triplets drawn for each anchor: first a positive, then a negative that may depend on it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from lookalike.miners.draws import draw_columns, evenly, preferring
from lookalike.miners.tuples import Tuples, negative_pairs, positive_pairs, unit_distance


class TripletMiner(ABC):
    """For each anchor first a positive, then a negative that may depend on it."""

    def __init__(self, triplets_per_anchor: int, generator: torch.Generator | None) -> None:
        if triplets_per_anchor < 1:
            raise ValueError(f"triplets_per_anchor={triplets_per_anchor} must be at least 1")
        self.triplets_per_anchor = triplets_per_anchor
        self.generator = generator

    @torch.no_grad()
    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        distance, positives, negatives = unit_distance(embeddings), positive_pairs(labels), negative_pairs(labels)
        anchor = (positives.any(dim=1) & negatives.any(dim=1)).nonzero().squeeze(1)
        anchor = anchor.repeat_interleave(self.triplets_per_anchor)
        if not len(anchor):
            return anchor, anchor.clone(), anchor.clone()
        distance, positives, negatives = distance[anchor], positives[anchor], negatives[anchor]  # (T, B) each
        positive = draw_columns(self.positive_weights(distance, positives, negatives), self.generator)
        positive_distance = distance.gather(1, positive[:, None])  # (T, 1)
        weights = self.negative_weights(distance, positive_distance, positives, negatives, embeddings.shape[1])
        drawable = weights.isfinite().any(dim=1)
        return anchor[drawable], positive[drawable], draw_columns(weights[drawable], self.generator)

    def positive_weights(self, distance: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
        """Log weights ``(T, B)`` of the positives: all alike unless a miner says otherwise."""
        return evenly(positives, distance)

    @abstractmethod
    def negative_weights(
        self, distance: Tensor, positive_distance: Tensor, positives: Tensor, negatives: Tensor, dim: int
    ) -> Tensor:
        """Log weights ``(T, B)`` of the negatives, given the distance of the positive ``(T, 1)``."""


class SemihardMiner(TripletMiner):
    """Any positive; a negative that is farther than it by less than ``margin``, or any if there is none.

    Source: DIML, released code.
    """

    def __init__(
        self, *, margin: float = 0.2, triplets_per_anchor: int = 1, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(triplets_per_anchor, generator)
        self.margin = margin

    def negative_weights(
        self, distance: Tensor, positive_distance: Tensor, positives: Tensor, negatives: Tensor, dim: int
    ) -> Tensor:
        """Log weights of the negatives."""
        semihard = negatives & (distance > positive_distance) & (distance < positive_distance + self.margin)
        return evenly(preferring(semihard, negatives), distance)


class SofthardMiner(TripletMiner):
    """A positive farther than the nearest negative, a negative nearer than the farthest positive, or else any.

    Source: DIML, released code.
    """

    def __init__(self, *, triplets_per_anchor: int = 1, generator: torch.Generator | None = None) -> None:
        super().__init__(triplets_per_anchor, generator)

    def positive_weights(self, distance: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
        """Log weights of the positives."""
        nearest_negative = distance.masked_fill(~negatives, math.inf).amin(dim=1, keepdim=True)
        return evenly(preferring(positives & (distance > nearest_negative), positives), distance)

    def negative_weights(
        self, distance: Tensor, positive_distance: Tensor, positives: Tensor, negatives: Tensor, dim: int
    ) -> Tensor:
        """Log weights of the negatives."""
        farthest_positive = distance.masked_fill(~positives, -math.inf).amax(dim=1, keepdim=True)
        return evenly(preferring(negatives & (distance < farthest_positive), negatives), distance)
