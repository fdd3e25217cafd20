"""Contrastive losses: one on Euclidean distances with mined pairs, one on cosine similarities with all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss as LibraryContrastiveLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer

from lookalike.losses.batch import LibraryLoss


class ContrastiveLoss(LibraryLoss):
    """Mean of ``(d_ap - positive_margin)+`` over positive pairs, plus ``(negative_margin - d_an)+`` over negative ones.

    Source: DIML Table 1, row Contrastive, numbers of the released code.
    """

    def __init__(
        self,
        *,
        positive_margin: float = 0.0,
        negative_margin: float = 1.0,
        miner: str | None = "distance_weighted",
        miner_parameters: Mapping[str, Any] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        criterion = LibraryContrastiveLoss(
            positive_margin, negative_margin, distance=LpDistance(), reducer=MeanReducer()
        )
        super().__init__(criterion, miner=miner, miner_parameters=miner_parameters, generator=generator)


class CosineContrastiveLoss(LibraryLoss):
    """``(positive_margin - s)+`` and ``(s - negative_margin)+``, each averaged over its strictly positive terms.

    Source: Contextual, Eq. 29 and Appendix H.5.
    """

    def __init__(
        self,
        *,
        positive_margin: float = 0.9,
        negative_margin: float = 0.6,
        miner: str | None = None,
        miner_parameters: Mapping[str, Any] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        criterion = LibraryContrastiveLoss(
            positive_margin, negative_margin, distance=CosineSimilarity(), reducer=AvgNonZeroReducer()
        )
        super().__init__(criterion, miner=miner, miner_parameters=miner_parameters, generator=generator)
