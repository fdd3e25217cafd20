"""Triplet losses, on distances and on ratios of signal and noise (SNR)."""

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

from lookalike.losses.batch import BatchLoss, LibraryLoss, Mining, MiningOptions, mean_or_zero
from lookalike.miners import Tuples
from lookalike.tensors import unit

LIBRARY_MINING = MappingProxyType({"lower": 0.5, "upper": 1.4, "triplets_per_anchor": 4})


class TripletLoss(LibraryLoss):
    """``(d_ap - d_an + margin)+`` on Euclidean distances, averaged over the strictly positive terms.

    Source: Contextual, baselines: the library's loss with the library's distance-weighted mining. Unless
    ``miner_parameters`` are given that miner leaves out distances from 1.4 on and draws 4 triplets per anchor, as the
    library does with 4 items per class.
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
    """Row Triplet-R of DIML Table 1."""

    mining = Mining("random")


class SemihardTripletLoss(SquaredTripletLoss):
    """Row Triplet-S of DIML Table 1."""

    mining = Mining("semihard")


class SofthardTripletLoss(SquaredTripletLoss):
    """Row Triplet-H of DIML Table 1."""

    mining = Mining("softhard")


class DistanceWeightedTripletLoss(SquaredTripletLoss):
    """Row Triplet-D of DIML Table 1."""

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
        return mean_or_zero(violations[violations > 0])


def _variance(vectors: Tensor) -> Tensor:
    """Variance of the entries of each row; the correction for small samples cancels in a ratio."""
    return (vectors - vectors.mean(dim=1, keepdim=True)).square().mean(dim=1)
