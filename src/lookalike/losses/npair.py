"""Losses on embeddings as they come: N-pair, Angular, Generalised Lifted.

Each adds a small multiple of the mean length of the embeddings, also for a batch without a valid tuple.
"""

from __future__ import annotations

import math
from typing import Unpack

import torch
import torch.nn.functional as F
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_pairs, logsumexp
from torch import Tensor

from lookalike.base.tensors import unit
from lookalike.losses.base import BatchLoss, Mining, MiningOptions, mean_or_zero, pair_mask
from lookalike.sampling.miners import Tuples


def mean_length(embeddings: Tensor) -> Tensor:
    """Mean Euclidean length of the rows."""
    lengths: Tensor = torch.linalg.vector_norm(embeddings, dim=1)
    return lengths.mean()


def pairs_and_negatives(tuples: Tuples | None, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Anchors ``(T,)`` and positives ``(T,)`` with the negatives of each anchor, ``(T, B)`` bool; T may be 0."""
    anchor, positive, other_anchor, negative = convert_to_pairs(tuples, labels)
    return anchor, positive, pair_mask(other_anchor, negative, labels)[anchor]


def log_one_plus(exponents: Tensor, counted: Tensor) -> Tensor:
    """``log(1 + sum exp(exponents))`` over the counted columns of each row, 0 where none is counted."""
    value: Tensor = logsumexp(exponents, keep_mask=counted, add_one=True, dim=1)
    return value.squeeze(1)


def npair_terms(embeddings: Tensor, anchor: Tensor, positive: Tensor, negatives: Tensor, *, cap: float) -> Tensor:
    """``log(1 + sum_n exp(min(a.n - a.p, cap)))`` for each pair, ``(T,)``."""
    similarity = embeddings[anchor] @ embeddings.T  # (T, B)
    exponents = similarity - similarity.gather(1, positive[:, None])
    return log_one_plus(exponents.clamp_max(cap), negatives)


def angular_terms(vectors: Tensor, anchor: Tensor, positive: Tensor, negatives: Tensor, *, degrees: float) -> Tensor:
    """``log(1 + sum_n exp(4 t (a + p).n - 2 (1 + t) a.p))`` for each pair, ``(T,)``, with ``t`` the squared tangent."""
    tangent = math.tan(math.radians(degrees)) ** 2
    first, second = vectors[anchor], vectors[positive]
    exponents = 4 * tangent * (first + second) @ vectors.T - 2 * (1 + tangent) * (first * second).sum(1, keepdim=True)
    return log_one_plus(exponents, negatives)


class NPairLoss(BatchLoss):
    """N-pair loss on raw dot products, averaged over the pairs, plus ``length_weight`` times the mean length.

    ``mean_ap log(1 + sum_n exp(x_a.x_n - x_a.x_p)) + length_weight mean |x|``.

    Source: DIML Table 1, row NPair.
    Differs: the library's NPairsLoss is another loss. Its NTXentLoss on dot products agrees but stops growing, and
    giving a gradient, where the loss exceeds 87 in float32.
    """

    reads_length = True
    mining = Mining("npair")

    def __init__(self, *, length_weight: float = 0.005, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(**mining)
        self.length_weight = length_weight

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen pairs."""
        terms = npair_terms(embeddings, *pairs_and_negatives(tuples, labels), cap=math.inf)
        return mean_or_zero(terms) + self.length_weight * mean_length(embeddings)


class AngularLoss(BatchLoss):
    """N-pair loss on raw dot products plus ``angular_weight`` times the angular loss on unit vectors, plus length.

    ``mean_ap log(1 + sum_n exp(min(x_a.x_n - x_a.x_p, 50))) + angular_weight mean_ap log(1 + sum_n exp(4 t (a + p).n -
    2 (1 + t) a.p)) + length_weight mean |x|`` with ``t = tan^2(degrees)`` and unit vectors ``a, p, n``.

    Source: DIML Table 1, row Angular.
    Differs: the library's AngularLoss normalises anchors and positives but not the negatives.
    """

    reads_length = True
    mining = Mining("npair")

    def __init__(
        self,
        *,
        degrees: float = 45.0,
        angular_weight: float = 2.0,
        length_weight: float = 0.005,
        **mining: Unpack[MiningOptions],
    ) -> None:
        super().__init__(**mining)
        if not 0 < degrees < 90:
            raise ValueError(f"degrees={degrees} is outside (0, 90)")
        self.degrees, self.angular_weight, self.length_weight = degrees, angular_weight, length_weight

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen pairs."""
        pairs = pairs_and_negatives(tuples, labels)
        npair = mean_or_zero(npair_terms(embeddings, *pairs, cap=50.0))
        angular = mean_or_zero(angular_terms(unit(embeddings), *pairs, degrees=self.degrees))
        return npair + self.angular_weight * angular + self.length_weight * mean_length(embeddings)


class GeneralisedLiftedLoss(BatchLoss):
    """Smooth maxima over all positives and all negatives of an anchor, on raw distances, plus the mean length.

    ``mean_a (log sum_p exp(|x_a - x_p|) + log sum_n exp(margin - |x_a - x_n|))+ + length_weight mean |x|``.

    Source: DIML Table 1, row GenLifted.
    Differs: the library's loss averages over all items; here, as in the released code, over anchors with a positive,
    and with a negative, without which the second sum does not exist.
    """

    reads_length = True

    def __init__(self, *, margin: float = 1.0, length_weight: float = 0.005, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(**mining)
        self.margin, self.length_weight = margin, length_weight

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for chosen pairs."""
        anchor, positive, other_anchor, negative = convert_to_pairs(tuples, labels)
        is_positive, is_negative = pair_mask(anchor, positive, labels), pair_mask(other_anchor, negative, labels)
        distance = torch.cdist(embeddings, embeddings)
        far = logsumexp(distance, keep_mask=is_positive, add_one=False)
        near = logsumexp(self.margin - distance, keep_mask=is_negative, add_one=False)
        complete = (is_positive.any(dim=1) & is_negative.any(dim=1)).nonzero().squeeze(1)
        terms = F.relu(far + near).squeeze(1)[complete]
        return mean_or_zero(terms) + self.length_weight * mean_length(embeddings)
