"""Losses over all pairs of a batch: Multi-Similarity, NT-Xent and Histogram."""

from __future__ import annotations

from typing import Literal, Unpack, get_args

import torch
import torch.nn.functional as F
from pytorch_metric_learning.losses import MultiSimilarityLoss as LibraryMultiSimilarityLoss
from pytorch_metric_learning.losses import NTXentLoss as LibraryNTXentLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_pairs
from torch import Tensor

from lookalike.checks import require_known
from lookalike.losses.batch import BatchLoss, LibraryLoss, Mining, MiningOptions, pair_mask
from lookalike.miners import Tuples
from lookalike.tensors import unit

AverageOver = Literal["active", "all"]


class MultiSimilarityLoss(LibraryLoss):
    """``log(1 + sum_p exp(-alpha (s_ap - base))) / alpha + log(1 + sum_n exp(beta (s_an - base))) / beta``.

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

    Source: Contextual, Section 5 baselines.
    """

    def __init__(self, *, temperature: float = 0.07, **mining: Unpack[MiningOptions]) -> None:
        criterion = LibraryNTXentLoss(temperature)
        super().__init__(criterion, **mining)


class HistogramLoss(BatchLoss):
    """Chance that a random negative pair is more similar than a random positive pair, from soft histograms.

    Source: DIML Table 1, row Histogram: ``bins`` intervals between ``bins + 1`` nodes on [-1, 1], 64 and on SOP 10
    (whose 11 nodes the released code compares as floats, and so misses some).
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
        near = self._histogram(similarity[_unordered(anchor, positive, labels)])
        far = self._histogram(similarity[_unordered(other_anchor, negative, labels)])
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
