"""Which tuples of a batch a loss looks at.

A miner is called like one of pytorch-metric-learning, ``miner(embeddings, labels)``, and returns index tensors:
``(anchor, positive, negative)``, or ``(anchor, positive, anchor, negative)`` where a loss needs pairs that do not
belong together. Distances are Euclidean between unit vectors, so they lie in [0, 2].

Differs: an anchor without a positive or without a negative in the batch gets no tuple. The released code of DIML pairs
an anchor without a positive with itself, which its own batches never make necessary.
Differs: pytorch-metric-learning draws from the global generator, as many triplets per anchor as its class has
members; here draws can come from a generator of one's own, and the number per anchor is an argument.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from pytorch_metric_learning import miners as library
from pytorch_metric_learning.utils.loss_and_miner_utils import get_all_triplets_indices
from torch import Tensor

from lookalike.methods.avsl.triplets import hardest_triplets

Tuples = tuple[Tensor, ...]


class Miner(Protocol):
    """What a loss needs of a miner."""

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        ...


def unit_distance(embeddings: Tensor) -> Tensor:
    """Euclidean distances ``(B, B)`` between the normalised rows of ``embeddings`` ``(B, D)``."""
    unit = F.normalize(embeddings, dim=1)
    return torch.cdist(unit, unit)


def positive_pairs(labels: Tensor) -> Tensor:
    """``(B, B)`` bool: same class, but not the item itself."""
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return (labels[:, None] == labels[None, :]) & ~itself


def negative_pairs(labels: Tensor) -> Tensor:
    """``(B, B)`` bool: different classes."""
    return labels[:, None] != labels[None, :]


def draw_columns(log_weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One column per row, drawn with probabilities proportional to ``exp(log_weights)``.

    The largest of log weight plus Gumbel noise is such a draw, so that weights may span any range without overflow.

    Args:
        log_weights: ``(T, B)``, minus infinity where a column must not be drawn; at least one finite value per row.
        generator: source of the noise, on any device; ``None`` takes the global one.

    Returns:
        ``(T,)`` int64.
    """
    device = log_weights.device if generator is None else generator.device
    noise = torch.empty(log_weights.shape, dtype=log_weights.dtype, device=device).exponential_(generator=generator)
    noise = noise.clamp_min(torch.finfo(log_weights.dtype).tiny)
    return (log_weights - noise.log().to(log_weights.device)).argmax(dim=1)


def evenly(allowed: Tensor, like: Tensor) -> Tensor:
    """Log weights that treat all ``allowed`` columns alike, in the dtype of ``like``."""
    return torch.zeros_like(like).masked_fill(~allowed, -math.inf)


def preferring(wanted: Tensor, allowed: Tensor) -> Tensor:
    """The wanted columns of a row, or all allowed ones where none is wanted."""
    return torch.where(wanted.any(dim=1, keepdim=True), wanted, allowed)


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


class _TripletMiner(ABC):
    """For each anchor first a positive, then a negative that may depend on it."""

    def __init__(self, triplets_per_anchor: int, generator: torch.Generator | None) -> None:
        if triplets_per_anchor < 1:
            raise ValueError(f"triplets_per_anchor={triplets_per_anchor} must be at least 1")
        self.triplets_per_anchor = triplets_per_anchor
        self.generator = generator

    @torch.no_grad()
    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
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


class SemihardMiner(_TripletMiner):
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


class SofthardMiner(_TripletMiner):
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


class DistanceWeightedMiner(_TripletMiner):
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


class HardestClampedMiner:
    """Any positive; the nearest negative once distances below ``cutoff`` count as equal, lowest index first.

    Source: AVSL, released code, triplets of the Margin loss: :func:`hardest_triplets` on plain distances.
    """

    def __init__(self, *, cutoff: float = 0.5, generator: torch.Generator | None = None) -> None:
        self.cutoff, self.generator = cutoff, generator

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        return hardest_triplets(unit_distance(embeddings), labels, self.cutoff, self.generator).unbind(dim=1)


class RandomMiner:
    """As many triplets as the batch has items, without repeats, out of all valid ones.

    Source: DIML, released code.
    """

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        triplets = torch.stack(get_all_triplets_indices(labels))  # (3, T)
        device = labels.device if self.generator is None else self.generator.device
        order = torch.randperm(triplets.shape[1], generator=self.generator, device=device)[: len(labels)]
        anchor, positive, negative = triplets[:, order.to(labels.device)]
        return anchor, positive, negative


class AllMiner:
    """Every valid triplet."""

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        anchor, positive, negative = get_all_triplets_indices(labels)
        return anchor, positive, negative


class NPairMiner:
    """For each anchor one positive, and all other items of the batch as its negatives.

    Returns four index tensors: pairs of anchor and positive, then pairs of anchor and negative.

    Source: DIML, released code, N-pair and Angular loss. Items of the anchor's own class other than the positive are
    among the negatives, as there; it makes no difference while a class has two items per batch.
    """

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    @torch.no_grad()
    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        positives = positive_pairs(labels)
        anchor = positives.any(dim=1).nonzero().squeeze(1)
        if not len(anchor):
            return anchor, anchor.clone(), anchor.clone(), anchor.clone()
        weights = evenly(positives[anchor], torch.empty(len(anchor), len(labels), device=labels.device))
        positive = draw_columns(weights, self.generator)
        others = torch.ones_like(weights, dtype=torch.bool)
        others.scatter_(1, torch.stack([anchor, positive], dim=1), False)
        row, negative = others.nonzero(as_tuple=True)
        return anchor, positive, anchor[row], negative


class MultiSimilarityMiner:
    """Positives not closer than the closest negative by ``epsilon`` of cosine similarity, and the reverse.

    Returns four index tensors, positive pairs and negative pairs; pytorch-metric-learning's miner as it is.
    """

    def __init__(self, *, epsilon: float = 0.1, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike
        self.criterion = library.MultiSimilarityMiner(epsilon=epsilon)

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        anchor, positive, other_anchor, negative = self.criterion(embeddings, labels)
        return anchor, positive, other_anchor, negative


MINERS: dict[str, Callable[..., Miner]] = {
    "all": AllMiner,
    "random": RandomMiner,
    "semihard": SemihardMiner,
    "softhard": SofthardMiner,
    "distance_weighted": DistanceWeightedMiner,
    "hardest_clamped": HardestClampedMiner,
    "multi_similarity": MultiSimilarityMiner,
    "npair": NPairMiner,
}


def build_miner(name: str, parameters: Mapping[str, Any], *, generator: torch.Generator | None = None) -> Miner:
    """The miner of that name.

    Raises:
        ValueError: for an unknown name or parameter; the message lists the known ones.
    """
    if name not in MINERS:
        raise ValueError(f"unknown miner {name!r}; known: {', '.join(sorted(MINERS))}")
    known = inspect.signature(MINERS[name]).parameters.keys() - {"generator"}
    if unknown := sorted(parameters.keys() - known):
        raise ValueError(f"miner {name!r} has no parameter {unknown[0]!r}; known: {', '.join(sorted(known)) or 'none'}")
    return MINERS[name](**parameters, generator=generator)
