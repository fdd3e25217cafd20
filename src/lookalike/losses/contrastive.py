"""Contrastive losses, on Euclidean distances, their squares, and cosine similarities."""

from __future__ import annotations

from typing import Unpack

import torch
import torch.nn.functional as F
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss as LibraryContrastiveLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_pairs
from torch import Tensor

from lookalike.losses.batch import BatchLoss, LibraryLoss, Mining, MiningOptions, mean_or_zero
from lookalike.miners import Tuples
from lookalike.tensors import unit


class ContrastiveLoss(LibraryLoss):
    """Mean of ``(d_ap - positive_margin)+`` over positive pairs, plus ``(negative_margin - d_an)+`` over negative ones.

    Source: DIML Table 1, row Contrastive, numbers of the released code.
    """

    mining = Mining("distance_weighted")

    def __init__(
        self, *, positive_margin: float = 0.0, negative_margin: float = 1.0, **mining: Unpack[MiningOptions]
    ) -> None:
        criterion = LibraryContrastiveLoss(
            positive_margin, negative_margin, distance=LpDistance(), reducer=MeanReducer()
        )
        super().__init__(criterion, **mining)


class CosineContrastiveLoss(LibraryLoss):
    """``(positive_margin - s)+`` and ``(s - negative_margin)+``, each averaged over its strictly positive terms.

    Source: Contextual, Eq. 29 and Appendix H.5.
    """

    def __init__(
        self, *, positive_margin: float = 0.9, negative_margin: float = 0.6, **mining: Unpack[MiningOptions]
    ) -> None:
        criterion = LibraryContrastiveLoss(
            positive_margin, negative_margin, distance=CosineSimilarity(), reducer=AvgNonZeroReducer()
        )
        super().__init__(criterion, **mining)


class SquaredContrastiveLoss(BatchLoss):
    """Mean of ``d_ap^2`` over positive pairs, plus mean of ``((margin - d_an)+)^2`` over negatives within ``margin``.

    Source: SAM Table 1, Siamese, which names no formula; Hadsell et al. 2006, Eq. 4, on unit vectors.
    Differs: Hadsell et al. halve each term. The means, over all pairs of the batch unless a miner is named, are ours;
    one over all negatives would fade while most of them lie beyond the margin.
    """

    def __init__(self, *, margin: float = 0.5, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(**mining)
        self.margin = margin

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen pairs."""
        anchor, positive, other_anchor, negative = convert_to_pairs(tuples, labels)
        vectors = unit(embeddings)
        distance = torch.cdist(vectors, vectors)
        too_near = F.relu(self.margin - distance[other_anchor, negative])
        return mean_or_zero(distance[anchor, positive].square()) + mean_or_zero(too_near[too_near > 0].square())
