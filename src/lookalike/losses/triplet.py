"""Losses of triplets, and of quadruplets: triplets with an item of a third class."""

from __future__ import annotations

from types import MappingProxyType
from typing import Unpack

import torch
import torch.nn.functional as F
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_triplets
from torch import Tensor

from lookalike.base.tensors import unit
from lookalike.losses.base import (
    BatchLoss,
    LibraryLoss,
    Mining,
    MiningOptions,
    mean_of_positive,
    mean_or_zero,
    pair_distance,
)
from lookalike.sampling.miners import Tuples, draw_columns, evenly, inverse_density, unit_distance

LIBRARY_MINING = MappingProxyType({"lower": 0.5, "upper": 1.4, "triplets_per_anchor": 4})


class TripletLoss(LibraryLoss):
    """``(d_ap - d_an + margin)+`` on Euclidean distances, averaged over the strictly positive terms.

    Mining is the library's by distance: unless ``miner_parameters`` are given it leaves out distances from 1.4 on and
    draws 4 triplets per anchor, as the library does with 4 items per class.

    Source: Contextual, Tables 2 to 4, row Triplet.
    """

    mining = Mining("distance_weighted", LIBRARY_MINING)

    def __init__(self, *, margin: float = 0.05, **mining: Unpack[MiningOptions]) -> None:
        criterion = TripletMarginLoss(margin, distance=LpDistance(), reducer=AvgNonZeroReducer())
        super().__init__(criterion, **mining)


class SquaredTripletLoss(LibraryLoss):
    """``(d_ap^2 - d_an^2 + margin)+``, averaged over all triplets.

    Source: DIML Table 1, rows Triplet-R, -S, -H and -D, which differ in the miner only.
    """

    def __init__(self, *, margin: float = 0.2, **mining: Unpack[MiningOptions]) -> None:
        criterion = TripletMarginLoss(margin, distance=LpDistance(power=2), reducer=MeanReducer())
        super().__init__(criterion, **mining)


class RandomTripletLoss(SquaredTripletLoss):
    """``(d_ap^2 - d_an^2 + margin)+``, mean over as many random triplets as the batch has items.

    Source: DIML Table 1, row Triplet-R.
    """

    mining = Mining("random")


class SemihardTripletLoss(SquaredTripletLoss):
    """``(d_ap^2 - d_an^2 + margin)+``, mean over a semihard triplet of each anchor: ``d_ap < d_an < d_ap + 0.2``.

    An anchor without such a negative takes any.

    Source: DIML Table 1, row Triplet-S.
    """

    mining = Mining("semihard")


class SofthardTripletLoss(SquaredTripletLoss):
    """``(d_ap^2 - d_an^2 + margin)+``, mean over a hard triplet of each anchor: ``d_ap > min_n d_an``.

    Its negative has ``d_an < max_p d_ap``. An anchor without such a positive or negative takes any.

    Source: DIML Table 1, row Triplet-H.
    """

    mining = Mining("softhard")


class DistanceWeightedTripletLoss(SquaredTripletLoss):
    """``(d_ap^2 - d_an^2 + margin)+``, mean over a triplet of each anchor whose negative is drawn by ``1 / q(d_an)``.

    The density of distances on the unit sphere is ``log q(d) = (D - 2) log d + (D - 3) / 2 log(1 - d^2 / 4)``; those
    below 0.5 count as 0.5.

    Source: DIML Table 1, row Triplet-D; Wu et al. 2017, Section 4.
    """

    mining = Mining("distance_weighted")


class SNRLoss(BatchLoss):
    """``(var(a - p) / var(a) - var(a - n) / var(a) + margin)+`` on unit vectors, mean of the strictly positive terms.

    Source: DIML Table 1, row SNR.
    Differs: equals the library's TripletMarginLoss with SNRDistance, which divides 0 by 0 for a vector of equal entries
    and holds ``(B, B, D)`` differences; variances are clamped to the machine epsilon.
    """

    mining = Mining("distance_weighted")

    def __init__(self, *, margin: float = 0.2, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(**mining)
        self.margin = margin

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen triplets."""
        anchor, positive, negative = convert_to_triplets(tuples, labels, t_per_anchor="all")
        vectors = unit(embeddings)
        signal = _variance(vectors[anchor]).clamp_min(torch.finfo(vectors.dtype).eps)
        noise = _variance(vectors[anchor] - vectors[positive]) - _variance(vectors[anchor] - vectors[negative])
        violations = F.relu(noise / signal + self.margin)
        return mean_of_positive(violations)


def _variance(vectors: Tensor) -> Tensor:
    """Variance of the entries of each row; the correction for small samples cancels in a ratio."""
    return (vectors - vectors.mean(dim=1, keepdim=True)).square().mean(dim=1)


def of_third_class(anchor: Tensor, negative: Tensor, labels: Tensor) -> Tensor:
    """``(T, B)`` bool: items of neither the anchor's class nor the negative's."""
    return (labels[anchor, None] != labels[None]) & (labels[negative, None] != labels[None])


class QuadrupletLoss(BatchLoss):
    """Mean of ``(d_ap - d_an + margin)+`` plus mean of ``(d_ap - d_nf + fourth_margin)+`` with a fourth item f.

    Source: DIML Table 1, row Quadruplet; Chen et al. 2017, Eq. 8.
    Differs: the released code takes an almost arbitrary batch index as fourth item and averages over the full B x B
    table. Here the fourth is drawn from the classes other than the anchor's and the negative's; triplets for which the
    batch has no third class contribute the first term only.
    """

    mining = Mining("distance_weighted")

    def __init__(self, *, margin: float = 0.2, fourth_margin: float = 0.2, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(**mining)
        self.margin, self.fourth_margin = margin, fourth_margin
        self.generator = mining.get("generator")

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen triplets."""
        anchor, positive, negative = convert_to_triplets(tuples, labels, t_per_anchor="all")
        others = of_third_class(anchor, negative, labels)
        has_fourth = others.any(dim=1).nonzero().squeeze(1)  # rows, as each mask would wait for its count
        chances = evenly(others[has_fourth], others[has_fourth].to(embeddings.dtype))
        fourth = draw_columns(chances, self.generator)
        vectors = unit(embeddings)
        near = pair_distance(vectors, anchor, positive)
        far = pair_distance(vectors, anchor, negative)
        apart = pair_distance(vectors, negative[has_fourth], fourth)
        first = F.relu(near - far + self.margin)
        second = F.relu(near[has_fourth] - apart + self.fourth_margin)
        return mean_or_zero(first) + mean_or_zero(second)


class TwoHingeQuadrupletLoss(BatchLoss):
    """``(d_ap - d_an + margin)+`` and ``(d_ap - d_am + margin)+`` with negatives n and m of two classes.

    Each of the two is averaged over its strictly positive terms, like the triplet loss of Contextual.

    Source: SAM Table 1, row Quadruplet.
    Differs: SAM names no formula; this is the form that matches its weight vector, where both negatives are compared
    with the anchor. Where m comes from is open too: it is drawn like the library's distance-weighted negatives, from
    the classes other than the anchor's and that of n, which is mined. Triplets for which the batch has no such item
    contribute the first hinge only. Mining is that of :class:`TripletLoss`.
    """

    mining = Mining("distance_weighted", LIBRARY_MINING)

    def __init__(self, *, margin: float = 0.2, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(**mining)
        self.margin, self.generator = margin, mining.get("generator")

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen triplets."""
        anchor, positive, negative = convert_to_triplets(tuples, labels, t_per_anchor="all")
        vectors = unit(embeddings)
        near = pair_distance(vectors, anchor, positive)
        first = F.relu(near - pair_distance(vectors, anchor, negative) + self.margin)
        weights = inverse_density(
            unit_distance(embeddings.detach()), embeddings.shape[1], lower=0.5, upper=1.4
        )  # (B, B)
        weights = weights[anchor].masked_fill(~of_third_class(anchor, negative, labels), -torch.inf)
        extended = weights.isfinite().any(dim=1).nonzero().squeeze(1)
        other_negative = draw_columns(weights[extended], self.generator)
        second = F.relu(near[extended] - pair_distance(vectors, anchor[extended], other_negative) + self.margin)
        return mean_of_positive(first) + mean_of_positive(second)
