"""Margin loss with one learned boundary per class."""

from __future__ import annotations

from typing import Literal, Unpack, get_args

import torch
import torch.nn.functional as F
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_triplets
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.losses.batch import BatchLoss, Mining, MiningOptions, pair_distance
from lookalike.miners import Tuples
from lookalike.tensors import unit

Divisor = Literal["either", "both"]


class MarginLoss(BatchLoss):
    """``(d_ap - b + margin)+`` and ``(b - d_an + margin)+``, with the boundary ``b`` of the anchor's class.

    Source: DIML Table 1, row Margin, and Eq. 10; Wu et al. 2017.
    Differs: the released code of DIML compares each distance with the boundary of every anchor; here each pair has its
    own, which is the same while boundaries are equal. The printed margin is learnable, the code's is fixed, as here.
    Differs: the library has ``divisor="both"`` only.

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
