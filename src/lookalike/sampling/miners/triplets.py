"""Triplets of a batch: all, the hardest of each anchor, and those drawn by distance."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from pytorch_metric_learning.utils.loss_and_miner_utils import get_all_triplets_indices
from torch import Tensor

from lookalike.base.tensors import beside
from lookalike.sampling.miners.tuples import (
    Tuples,
    complete_anchors,
    draw_columns,
    evenly,
    negative_pairs,
    positive_pairs,
    preferring,
    unit_distance,
)


def _candidates(distance: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Masks of positives and negatives ``(N, N)``, and the anchors ``(T,)`` that have both."""
    if distance.ndim != 2 or distance.shape[0] != distance.shape[1]:
        raise ValueError(f"distance has shape {tuple(distance.shape)}, it must be (N, N)")
    if labels.shape != distance.shape[:1]:
        raise ValueError(f"labels has shape {tuple(labels.shape)}, it must be ({len(distance)},)")
    anchors = beside(complete_anchors(labels), distance)
    labels = beside(labels, distance)
    return positive_pairs(labels), negative_pairs(labels), anchors


def _draw(weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """One index per row, with the given weights."""
    if not len(weights):
        return weights.new_empty(0, dtype=torch.int64)
    where = weights.device if generator is None else generator.device
    return torch.multinomial(weights.to(where), 1, generator=generator).squeeze(1).to(weights.device)


@torch.no_grad()
def hardest_triplets(
    distance: Tensor, labels: Tensor, cutoff: float = 0.5, generator: torch.Generator | None = None
) -> Tensor:
    """One triplet per anchor: a random positive and the nearest negative that is not too near.

    Source: released code; the paper is silent. All distances are raised to one floor for the whole batch, the smaller
    of ``cutoff`` and the largest distance between any two images of one class; among those raised the lowest index is
    the nearest.

    Args:
        distance: ``(N, N)``.
        labels: ``(N,)`` int64.
        cutoff: upper end of the floor.
        generator: for the positives, uniform among the anchor's class.

    Returns:
        ``(T, 3)`` int64 rows of anchor, positive, negative in order of anchors; an anchor without a positive or
        without a negative has none.

    Raises:
        ValueError: if ``distance`` is not square or does not fit ``labels``.
    """
    positive, negative, anchors = _candidates(distance, labels)
    chosen = _draw(positive[anchors].to(distance.dtype), generator)
    floor = distance.masked_fill(~positive, -torch.inf).amax().clamp(max=cutoff)
    raised = distance.clamp(min=floor).masked_fill(~negative, torch.inf)
    return torch.stack([anchors, chosen, raised[anchors].argmin(dim=1)], dim=1)


@torch.no_grad()
def distance_weighted_triplets(
    distance: Tensor,
    labels: Tensor,
    dim: int,
    cutoff: float = 0.5,
    nonzero_loss_cutoff: float = 1.4,
    generator: torch.Generator | None = None,
) -> Tensor:
    """One triplet per anchor: a random positive, and a negative drawn as if distances were spread evenly.

    Source: Wu et al., Sampling Matters in Deep Embedding Learning (ICCV 2017), section 4, which AVSL cites: weights
    are the inverse of the density of distances between random points of the unit sphere.

    Args:
        distance: ``(N, N)``, squared Euclidean of unit vectors.
        labels: ``(N,)`` int64.
        dim: size of the embedding.
        cutoff: smallest distance (not squared), nearer negatives weigh as much as one there.
        nonzero_loss_cutoff: negatives farther than this (not squared) are drawn only where all are.
        generator: for positives and negatives.

    Returns:
        ``(T, 3)`` int64, as `hardest_triplets`.

    Raises:
        ValueError: as `hardest_triplets`, or if the cutoffs are not ``0 < cutoff < nonzero_loss_cutoff < 2``.
    """
    if not 0 < cutoff < nonzero_loss_cutoff < 2:
        raise ValueError(f"cutoff={cutoff} and nonzero_loss_cutoff={nonzero_loss_cutoff} must rise between 0 and 2")
    positive, negative, anchors = _candidates(distance, labels)
    chosen = _draw(positive[anchors].to(distance.dtype), generator)
    negative = negative[anchors]
    far = distance[anchors] > nonzero_loss_cutoff**2
    near = negative & ~far
    eligible = torch.where(near.any(dim=1, keepdim=True), near, negative)
    squared = distance[anchors].clamp(cutoff**2, nonzero_loss_cutoff**2)
    log_weight = -0.5 * ((dim - 2) * squared.log() + (dim - 3) * (1 - squared / 4).log())
    # Relative to the heaviest of the row, so that it never overflows.
    weight = log_weight.masked_fill(~eligible, -torch.inf).softmax(dim=1)
    return torch.stack([anchors, chosen, _draw(weight, generator)], dim=1)


class AllMiner:
    """Every valid triplet."""

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        anchor, positive, negative = get_all_triplets_indices(beside(labels, embeddings))
        return anchor, positive, negative


class RandomMiner:
    """As many triplets as the batch has items, without repeats, out of all valid ones.

    Source: DIML, released code.
    """

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        triplets = torch.stack(get_all_triplets_indices(beside(labels, embeddings)))  # (3, T)
        device = triplets.device if self.generator is None else self.generator.device
        order = torch.randperm(triplets.shape[1], generator=self.generator, device=device)[: len(labels)]
        anchor, positive, negative = triplets[:, order.to(triplets.device)]
        return anchor, positive, negative


class HardestMiner:
    """The farthest positive and the nearest negative of each anchor.

    Source: Hermans et al. 2017 (batch hard), usual in re-identification.
    """

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        anchor = beside(complete_anchors(labels), embeddings)
        labels = beside(labels, embeddings)
        distance, positives, negatives = unit_distance(embeddings), positive_pairs(labels), negative_pairs(labels)
        positive = distance.masked_fill(~positives, -math.inf).argmax(dim=1)
        negative = distance.masked_fill(~negatives, math.inf).argmin(dim=1)
        return anchor, positive[anchor], negative[anchor]


class HardestClampedMiner:
    """Any positive; the nearest negative once distances below a floor of the batch count as equal, lowest index first.

    Source: AVSL, released code, triplets of the Margin loss: :func:`hardest_triplets` on plain distances.
    """

    def __init__(self, *, cutoff: float = 0.5, generator: torch.Generator | None = None) -> None:
        self.cutoff, self.generator = cutoff, generator

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        return hardest_triplets(unit_distance(embeddings), labels, self.cutoff, self.generator).unbind(dim=1)


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
        anchor = beside(complete_anchors(labels), embeddings)
        labels = beside(labels, embeddings)
        distance, positives, negatives = unit_distance(embeddings), positive_pairs(labels), negative_pairs(labels)
        anchor = anchor.repeat_interleave(self.triplets_per_anchor)
        if not len(anchor):
            return anchor, anchor.clone(), anchor.clone()
        distance, positives, negatives = distance[anchor], positives[anchor], negatives[anchor]  # (T, B) each
        positive = draw_columns(self.positive_weights(distance, positives, negatives), self.generator)
        positive_distance = distance.gather(1, positive[:, None])  # (T, 1)
        weights = self.negative_weights(distance, positive_distance, positives, negatives, embeddings.shape[1])
        drawable = weights.isfinite().any(dim=1).nonzero().squeeze(1)  # rows, as each mask would wait for its count
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


def inverse_density(distance: Tensor, dim: int, *, lower: float = 0.5, upper: float | None = None) -> Tensor:
    """Log of one over the density of distances between random points of the unit sphere, up to a constant.

    Source: DIML, released code; Wu et al. 2017, Section 4: ``log q = (D - 2) log d + (D - 3) / 2 log(1 - d^2 / 4)``.
    Differs: the released code takes 128 for the dimension whatever it is.

    Args:
        distance: any shape, in [0, 2].
        dim: dimension D of the embeddings.
        lower: smaller distances count as this one.
        upper: distances from here on get no weight; ``None`` for all.

    Returns:
        Shape of ``distance``; minus infinity where nothing may be drawn.
    """
    clamped = distance.clamp_min(lower)
    # Antipodes have density 0; the smallest step below 1 stands for it, so that their weight stays finite.
    remainder = (1 - clamped.square() / 4).clamp_min(torch.finfo(distance.dtype).eps)
    log_density = (dim - 2) * clamped.log() + (dim - 3) / 2 * remainder.log()
    return -log_density if upper is None else (-log_density).masked_fill(clamped >= upper, -math.inf)


class DistanceWeightedMiner(TripletMiner):
    """Any positive; a negative with the weight :func:`inverse_density`.

    DIML's setting is the default. ``upper=1.4, triplets_per_anchor=m`` is pytorch-metric-learning's for classes of
    m items per batch.

    Source: DIML, released code.
    Differs: pytorch-metric-learning scales all weights of the batch by one constant; in float32 those of whole
    anchors then vanish (from about D = 256 on) and the anchors are lost. Here every row stands for itself.
    """

    def __init__(
        self,
        *,
        lower: float = 0.5,
        upper: float | None = None,
        triplets_per_anchor: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        if not 0 < lower < 2:
            raise ValueError(f"lower={lower} is outside (0, 2), the distances between unit vectors")
        if upper is not None and upper <= lower:
            raise ValueError(f"upper={upper} must lie above lower={lower}")
        super().__init__(triplets_per_anchor, generator)
        self.lower, self.upper = lower, upper

    def negative_weights(
        self, distance: Tensor, positive_distance: Tensor, positives: Tensor, negatives: Tensor, dim: int
    ) -> Tensor:
        """Log weights of the negatives."""
        weights = inverse_density(distance, dim, lower=self.lower, upper=self.upper)
        return weights.masked_fill(~negatives, -math.inf)
