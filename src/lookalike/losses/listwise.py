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
    """FastAP: average precision from soft histograms of squared distances.

    ``1 - 1/|P_i| sum_m h+_m H+_m / H_m``, mean over the items i with a positive. ``h_m`` counts the other items of the
    batch at node m of ``bins + 1`` on [0, 4], linear between nodes, ``h+_m`` the positives ``P_i`` among them. ``H``
    and ``H+`` add up the nodes to m.

    Source: Contextual, Tables 4, 7 and 8, row Fast-AP.
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
    """Smooth-AP: average precision with a sigmoid for each comparison of two similarities.

    ``(1 - w) (1 - mean_i AP_i) + w contrastive_cosine`` with ``AP_i = 1/|P_i| sum_{j in P_i} r_j / (r_j + sum_{n not in
    P_i} h-(s_in - s_ij))``, ``r_j = 1 + sum_{p in P_i, p != j} h+(s_ip - s_ij)`` and ``h+(t) = h-(t) = sigmoid(t /
    temperature)``; ``P_i`` holds i, and w is the ``contrastive_weight``.

    Source: Contextual, Tables 4 and 6 to 8, row Smooth-AP; Brown et al. 2020. Alone as in the 256 px code; the 224 px
    code has ``contrastive_weight=0.5``.
    """

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

    As `smooth_ap`, with ``h+(t) = [t >= 0]`` without gradient, and ``h-(t) = sigmoid(t / temperature)`` up to 0, ``1/2
    + sigmoid(t / temperature)`` up to ``delta``, and ``rho (t - delta) + offset`` beyond.

    Source: Contextual, Tables 2 to 4 and Appendix H.5, row ROADMAP; Ramzi et al. 2021.
    Differs: the released code of Contextual has ``rho t + offset`` beyond ``delta``; this is ROADMAP's.
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
    """SoftBin-AP: average precision from soft counts in bins of similarity.

    ``(1 - w) (1 - mean_i sum_m (H+_m / H_m) (h+_m / |P_i|)) + w contrastive_cosine``. ``h_m`` counts the batch in bin m
    of ``bins``, whose centres fall from 1 to -1, linear between centres, ``h+_m`` the positives ``P_i``, i itself among
    them; ``H`` and ``H+`` add up the bins to m, and w is the ``contrastive_weight``.

    Source: Contextual, Section 5 baselines; Revaud et al. 2019.
    """

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
    """Blackbox-AP: average precision on true ranks, with fresh noise.

    ``(1 - w) (1 - mean_i 1/|P_i| sum_{j in P_i} r+_ij / r_ij) + w contrastive_cosine``. ``r_ij`` is the rank of j in
    row i of ``s - margin |z| (y - 1/2)`` with normal ``z`` and y 1 for a shared class, ``r+_ij`` that among the
    positives ``P_i``, which hold i, and w the ``contrastive_weight``. A gradient g of ``r / B`` becomes ``(r(s + lam g)
    - r(s)) / (B lam)``, and ``r+`` has none.

    Source: Contextual, Section 5 baselines; Rolinek et al. 2020.
    """

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
