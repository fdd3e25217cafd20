"""Triplets out of all that the batch has: every one, a random choice, or the hardest of each anchor."""

from __future__ import annotations

import math

import torch
from pytorch_metric_learning.utils.loss_and_miner_utils import get_all_triplets_indices
from torch import Tensor

from lookalike.miners.per_anchor import hardest_triplets
from lookalike.miners.tuples import Tuples, negative_pairs, positive_pairs, unit_distance


class AllMiner:
    """Every valid triplet."""

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        anchor, positive, negative = get_all_triplets_indices(labels)
        return anchor, positive, negative


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


class HardestMiner:
    """The farthest positive and the nearest negative of each anchor.

    Source: Hermans et al. 2017 (batch hard), usual in re-identification.
    """

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        distance, positives, negatives = unit_distance(embeddings), positive_pairs(labels), negative_pairs(labels)
        anchor = (positives.any(dim=1) & negatives.any(dim=1)).nonzero().squeeze(1)
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
