"""Losses over pairs of a batch: Contrastive, Margin, Multi-Similarity, NT-Xent and Histogram."""

from __future__ import annotations

from typing import Literal, Unpack, get_args

import torch
import torch.nn.functional as F
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss as LibraryContrastiveLoss
from pytorch_metric_learning.losses import MultiSimilarityLoss as LibraryMultiSimilarityLoss
from pytorch_metric_learning.losses import NTXentLoss as LibraryNTXentLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_pairs, convert_to_triplets
from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.base.tensors import unit
from lookalike.losses.base import (
    BatchLoss,
    LibraryLoss,
    Mining,
    MiningOptions,
    mean_of_positive,
    mean_or_zero,
    pair_distance,
    pair_mask,
)
from lookalike.sampling.miners import Tuples

AverageOver = Literal["active", "all"]
Divisor = Literal["either", "both"]


class MultiSimilarityLoss(LibraryLoss):
    """``log(1 + sum_p exp(-alpha (s_ap - base))) / alpha + log(1 + sum_n exp(beta (s_an - base))) / beta``.

    The mean is over anchors with a positive loss, or over all items.

    Source: DIML Table 1, row MS. Contextual takes ``beta=50, average_over="all"``, without miner or (its row "+ miner")
    with this one.

    Args:
        alpha: scale of the positives.
        beta: scale of the negatives.
        base: cosine similarity that both kinds are compared with.
        average_over: ``active`` anchors, those with a positive loss (DIML), or ``all`` items (the library).
        mining: see :class:`BatchLoss`.
    """

    mining = Mining("multi_similarity")

    def __init__(
        self,
        *,
        alpha: float = 2.0,
        beta: float = 40.0,
        base: float = 0.5,
        average_over: AverageOver = "active",
        **mining: Unpack[MiningOptions],
    ) -> None:
        require_known("average_over", average_over, get_args(AverageOver))
        reducer = AvgNonZeroReducer() if average_over == "active" else MeanReducer()
        criterion = LibraryMultiSimilarityLoss(alpha, beta, base, reducer=reducer)
        super().__init__(criterion, **mining)


class NTXentLoss(LibraryLoss):
    """Cross entropy of each positive against the negatives of its anchor, on cosine over ``temperature``.

    ``-log(e_p / (e_p + sum_n e_n))`` with ``e_i = exp(s_ai / temperature)``, mean over positive pairs.

    Source: Contextual, Tables 4 and 6 to 8, row NtXent.
    """

    def __init__(self, *, temperature: float = 0.07, **mining: Unpack[MiningOptions]) -> None:
        criterion = LibraryNTXentLoss(temperature)
        super().__init__(criterion, **mining)


class HistogramLoss(BatchLoss):
    """Chance that a random negative pair is more similar than a random positive pair, from soft histograms.

    ``sum_m h-_m sum_{l <= m} h+_l``. ``h+_m`` and ``h-_m`` are shares of the positive and the negative pairs at node m
    of ``bins + 1`` on [-1, 1], linear between nodes.

    Source: DIML Table 1, row Histogram: ``bins`` 64, and 10 on SOP (whose 11 nodes the released code compares as
    floats, and so misses some).
    Differs: the library's loss breaks off with an index error where a similarity is exactly 1; the values agree.
    """

    def __init__(self, *, bins: int = 64, **mining: Unpack[MiningOptions]) -> None:
        if bins < 1:
            raise ValueError(f"bins={bins} must be at least 1")
        super().__init__(**mining)
        self.bins = bins

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen pairs, each counted once whatever its order."""
        anchor, positive, other_anchor, negative = convert_to_pairs(tuples, labels)
        vectors = unit(embeddings)
        similarity = (vectors @ vectors.T).clamp(-1, 1)
        # Rows and columns, as masks would wait for their counts once more in the backward pass.
        near = self._histogram(similarity[_unordered(anchor, positive, labels).nonzero(as_tuple=True)])
        far = self._histogram(similarity[_unordered(other_anchor, negative, labels).nonzero(as_tuple=True)])
        return (far * near.cumsum(dim=0)).sum()

    def _histogram(self, similarities: Tensor) -> Tensor:
        """Share of the similarities ``(T,)`` at each node, ``(bins + 1,)``, linear between nodes."""
        nodes = torch.linspace(-1, 1, self.bins + 1, dtype=similarities.dtype, device=similarities.device)
        shares = F.relu(1 - (similarities[:, None] - nodes).abs() * self.bins / 2)  # (T, bins + 1)
        return shares.sum(dim=0) / max(len(similarities), 1)


def _unordered(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """``(B, B)`` bool above the diagonal: pairs without their order."""
    mask = pair_mask(first, second, labels)
    return (mask | mask.T).triu(diagonal=1)


class ContrastiveLoss(LibraryLoss):
    """``mean_ap (d_ap - positive_margin)+ + mean_an (negative_margin - d_an)+``.

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
    """``(positive_margin - s_ap)+`` plus ``(s_an - negative_margin)+``, each averaged over its strictly positive terms.

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

    Source: SAM Table 1, row Siamese; Hadsell et al. 2006, Eq. 4, on unit vectors.
    Differs: SAM names no formula, and Hadsell et al. halve each term. The means, over all pairs of the batch unless a
    miner is named, are ours; one over all negatives would fade while most of them lie beyond the margin.
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
        return mean_or_zero(distance[anchor, positive].square()) + mean_of_positive(too_near.square())


class MarginLoss(BatchLoss):
    """``(d_ap - b + margin)+`` and ``(b - d_an + margin)+``, with the boundary ``b`` of the anchor's class.

    The sum over triplets is divided by the number of triplets with a positive term, or by that of positive terms.

    Source: DIML Table 1, row Margin, and Eq. 10; Wu et al. 2017.
    Differs: the released code of DIML compares each distance with the boundary of every anchor; here each pair has its
    own, which is the same while boundaries are equal. The printed margin is learnable, the code's is fixed, as here.
    The library has ``divisor="both"`` only.

    Args:
        classes: number of boundaries; they are the parameter ``boundaries``.
        margin: half the width of the band around the boundary.
        boundary: where all boundaries start, a Euclidean distance between unit vectors.
        divisor: the sum is divided by the number of triplets in which at least one term is positive (``either``, the
            code of DIML and its tables) or by the number of positive terms (``both``, the library and AVSL).
        mining: see :class:`BatchLoss`.
    """

    mining = Mining("distance_weighted")

    def __init__(
        self,
        *,
        classes: int,
        margin: float = 0.2,
        boundary: float = 1.2,
        divisor: Divisor = "either",
        **mining: Unpack[MiningOptions],
    ) -> None:
        super().__init__(classes=classes, **mining)
        require_known("divisor", divisor, get_args(Divisor))
        self.margin, self.divisor = margin, divisor
        self.boundaries = nn.Parameter(torch.full((classes,), float(boundary)))

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen triplets."""
        anchor, positive, negative = convert_to_triplets(tuples, labels, t_per_anchor="all")
        vectors, boundary = unit(embeddings), self.boundaries[labels[anchor]]
        too_far = F.relu(pair_distance(vectors, anchor, positive) - boundary + self.margin)
        too_near = F.relu(boundary - pair_distance(vectors, anchor, negative) + self.margin)
        if self.divisor == "either":
            active = ((too_far > 0) | (too_near > 0)).sum()
        else:
            active = (too_far > 0).sum() + (too_near > 0).sum()
        return (too_far + too_near).sum() / active.clamp_min(1)
