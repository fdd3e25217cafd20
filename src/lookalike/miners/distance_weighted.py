"""Negatives drawn as if distances were spread evenly."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lookalike.miners.drawn_triplets import TripletMiner


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
