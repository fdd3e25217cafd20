"""Losses that rank the whole batch for each item; no tuples are chosen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from pytorch_metric_learning.losses import FastAPLoss as LibraryFastAPLoss
from torch import Tensor

from lookalike.base.tensors import unit
from lookalike.losses.average_precision import blackbox_ap_loss, smooth_ap_loss, softbin_ap_loss, sup_ap_loss
from lookalike.losses.base import BatchLoss, LibraryLoss
from lookalike.losses.pairwise import CosineContrastiveLoss
from lookalike.sampling.miners import Tuples


class FastAPLoss(LibraryLoss):
    """FastAP with soft histograms of squared distances.

    Source: Contextual, Section 5 baselines.
    """

    def __init__(self, *, bins: int = 10) -> None:
        super().__init__(LibraryFastAPLoss(num_bins=bins))


class _RankingLoss(BatchLoss):
    """``(1 - contrastive_weight)`` of a loss on the similarity matrix, and that weight of a contrastive loss.

    Args:
        ranking_loss: of cosine similarities ``(B, B)`` and labels ``(B,)``.
        contrastive_weight: in [0, 1].
        positive_margin: of the contrastive loss.
        negative_margin: of the contrastive loss.

    Raises:
        ValueError: for a weight outside [0, 1], or when called with tuples: a ranking has none.
    """

    def __init__(
        self,
        ranking_loss: Callable[[Tensor, Tensor], Tensor],
        contrastive_weight: float,
        positive_margin: float,
        negative_margin: float,
    ) -> None:
        if not 0 <= contrastive_weight <= 1:
            raise ValueError(f"contrastive_weight={contrastive_weight} is outside [0, 1]")
        super().__init__()
        self.ranking_loss = ranking_loss
        self.contrastive_weight = contrastive_weight
        self.contrastive = CosineContrastiveLoss(positive_margin=positive_margin, negative_margin=negative_margin)

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The weighted sum."""
        if tuples is not None:
            raise ValueError("indices_tuple must be None: this loss ranks the whole batch")
        vectors = unit(embeddings)
        loss = (1 - self.contrastive_weight) * self.ranking_loss(vectors @ vectors.T, labels)
        if self.contrastive_weight > 0:
            loss = loss + self.contrastive_weight * self.contrastive(embeddings, labels)
        return loss


class SmoothAPLoss(_RankingLoss):
    """Smooth-AP, alone as in Contextual's 256 px code; its 224 px code has ``contrastive_weight=0.5``."""

    def __init__(
        self,
        *,
        temperature: float = 0.01,
        contrastive_weight: float = 0.0,
        positive_margin: float = 0.9,
        negative_margin: float = 0.6,
    ) -> None:
        ranking_loss = partial(smooth_ap_loss, temperature=temperature)
        super().__init__(ranking_loss, contrastive_weight, positive_margin, negative_margin)


class RoadmapLoss(_RankingLoss):
    """ROADMAP: SupAP and the contrastive loss, half and half.

    Source: Contextual, Section 5 baselines and Appendix H.5.
    """

    def __init__(
        self,
        *,
        temperature: float = 0.01,
        rho: float = 100.0,
        delta: float = 0.05,
        offset: float = 1.44,
        contrastive_weight: float = 0.5,
        positive_margin: float = 0.9,
        negative_margin: float = 0.6,
    ) -> None:
        ranking_loss = partial(sup_ap_loss, temperature=temperature, rho=rho, delta=delta, offset=offset)
        super().__init__(ranking_loss, contrastive_weight, positive_margin, negative_margin)


class SoftbinAPLoss(_RankingLoss):
    """SoftBin-AP. Source: Contextual, Section 5 baselines."""

    def __init__(
        self,
        *,
        bins: int = 20,
        contrastive_weight: float = 0.0,
        positive_margin: float = 0.9,
        negative_margin: float = 0.6,
    ) -> None:
        ranking_loss = partial(softbin_ap_loss, bins=bins)
        super().__init__(ranking_loss, contrastive_weight, positive_margin, negative_margin)


class BlackboxAPLoss(_RankingLoss):
    """Blackbox-AP with fresh noise. Source: Contextual, Section 5 baselines."""

    def __init__(
        self,
        *,
        lam: float = 4.0,
        margin: float = 0.02,
        contrastive_weight: float = 0.0,
        positive_margin: float = 0.9,
        negative_margin: float = 0.6,
        generator: torch.Generator | None = None,
    ) -> None:
        ranking_loss = partial(blackbox_ap_loss, lam=lam, margin=margin, generator=generator)
        super().__init__(ranking_loss, contrastive_weight, positive_margin, negative_margin)
