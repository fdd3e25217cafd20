"""Losses of average precision, as functions of a similarity matrix and labels: smooth stand-ins, and true ranks.

Source: Contextual, baselines; Blackbox-AP is by Rolinek et al. 2020.

Query i ranks the whole batch; its positives ``P_i`` are the items of its class, itself included. Each function returns
one minus the mean over queries of ::

    AP_i = 1 / |P_i| sum_{j in P_i} r_j / (r_j + sum_{p not in P_i} h-(t)),   r_j = 1 + sum_{p in P_i, p != j} h+(t)

with ``t = s_ip - s_ij`` and its own replacements ``h+`` (positives) and ``h-`` (negatives) for the step function.

Source: Contextual, baselines. Smooth-AP is by Brown et al. 2020, SupAP (ROADMAP) by Ramzi et al. 2021, SoftBin-AP by
Revaud et al. 2019. Blackbox-AP, which needs no stand-in, is re-exported.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lookalike.base.checks import require_positive
from lookalike.losses.base import same_class

__all__ = ["blackbox_ap_loss", "smooth_ap_loss", "softbin_ap_loss", "sup_ap_loss"]


def blackbox_ap_loss(
    similarity: Tensor,
    labels: Tensor,
    lam: float = 4.0,
    margin: float = 0.02,
    noise: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Blackbox-AP: average precision on true ranks, whose gradient is a difference of two rankings.

    Ranks are divided by n. Those among the positives are constants.

    Args:
        similarity: ``(n, n)`` float, row i for query i.
        labels: ``(n,)`` int64.
        lam: step of the difference, above 0.
        margin: positives lose and negatives gain ``margin / 2`` times the size of the noise before they are ranked;
            0 ranks the similarities as they are.
        noise: ``(n, n)`` standard normal; drawn if ``None``.
        generator: what it is drawn from; ``None`` is the global one.

    Returns:
        Scalar in (0, 1).

    Raises:
        ValueError: for shapes that do not belong together, ``lam <= 0`` or ``margin < 0``.
    """
    require_positive("lam", lam)
    if margin < 0:
        raise ValueError(f"margin={margin} must be at least 0")
    same = same_class(similarity, labels).to(similarity.dtype)
    if margin > 0:
        if noise is None:
            device = similarity.device if generator is None else generator.device
            noise = torch.randn(similarity.shape, generator=generator, dtype=similarity.dtype, device=device)
        elif noise.shape != similarity.shape:
            raise ValueError(f"noise {tuple(noise.shape)} must have the shape {tuple(similarity.shape)}")
        similarity = similarity - margin * noise.to(similarity).abs() * (same - 0.5)
    ranks: Tensor = _BlackboxRank.apply(similarity, lam)
    among_positives = (same * _rank_among(ranks.detach(), same)).detach() / len(labels)
    precision = (among_positives / ranks).sum(dim=1) / (same.sum(dim=1) + 1e-5)
    return 1 - precision.mean()


class _BlackboxRank(torch.autograd.Function):
    """Descending rank within each row over the row length; its gradient compares the ranking with a shifted one."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, lam: float) -> Tensor:
        ranks = _rank(scores)
        ctx.save_for_backward(scores, ranks)
        ctx.lam = lam
        return ranks

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        scores, ranks = ctx.saved_tensors
        return -(ranks - _rank(scores + ctx.lam * gradients[0])) / ctx.lam, None


def _rank(scores: Tensor) -> Tensor:
    """Rank of each entry in its row over the row length: ``1 / n`` for the largest; ties by index."""
    order = scores.argsort(dim=1, descending=True, stable=True)
    places = torch.arange(1, scores.shape[1] + 1, device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places).to(scores.dtype) / scores.shape[1]


def _rank_among(ranks: Tensor, same: Tensor) -> Tensor:
    """For each entry the number of positives of its row that are ranked no lower, from 1 for the first positive."""
    order = ranks.argsort(dim=1)
    return torch.empty_like(same).scatter_(1, order, same.gather(1, order).cumsum(dim=1))


def smooth_ap_loss(similarity: Tensor, labels: Tensor, temperature: float = 0.01) -> Tensor:
    """Smooth-AP: both replacements are a sigmoid of ``t / temperature``.

    Differs: the library's SmoothAPLoss is right only for batches sorted by class with as many classes as items per
    class. The original bounds the exponent at 50, which changes no value by more than 2e-22.

    Args:
        similarity: ``(n, n)`` float, row i for query i.
        labels: ``(n,)`` int64.
        temperature: width of the sigmoid, above 0.

    Returns:
        Scalar in [0, 1).

    Raises:
        ValueError: for shapes that do not belong together or ``temperature <= 0``.
    """
    require_positive("temperature", temperature)
    difference, same, others = _differences(similarity, labels)
    steps = torch.sigmoid(difference / temperature)
    return _one_minus_ap(steps * others, steps * ~same, labels)


def sup_ap_loss(
    similarity: Tensor,
    labels: Tensor,
    temperature: float = 0.01,
    rho: float = 100.0,
    delta: float = 0.05,
    offset: float = 1.44,
) -> Tensor:
    """SupAP of ROADMAP: the true step for positives, without gradient, and an upper bound of it for negatives.

    The bound is ``sigmoid(t / temperature)`` up to 0, one half more up to ``delta``, then ``rho (t - delta) + offset``.

    Differs: the released code of Contextual has ``rho t + offset`` beyond ``delta``; this is ROADMAP's.

    Args:
        similarity: ``(n, n)`` float, row i for query i.
        labels: ``(n,)`` int64.
        temperature: width of the sigmoid, above 0.
        rho: slope for negatives far above the positive.
        delta: where that slope starts, at least 0.
        offset: value there.

    Returns:
        Scalar in [0, 1).

    Raises:
        ValueError: for shapes that do not belong together, ``temperature <= 0`` or ``delta < 0``.
    """
    require_positive("temperature", temperature)
    if delta < 0:
        raise ValueError(f"delta={delta} must be at least 0")
    difference, same, others = _differences(similarity, labels)
    above = (difference >= 0).to(similarity.dtype)
    bound = torch.sigmoid(difference / temperature) + 0.5 * (difference > 0)
    bound = torch.where(difference > delta, rho * (difference - delta) + offset, bound)
    return _one_minus_ap(above * others, bound * ~same, labels)


def softbin_ap_loss(similarity: Tensor, labels: Tensor, bins: int = 20) -> Tensor:
    """SoftBin-AP: precision and recall counted in triangular bins over [-1, 1].

    Args:
        similarity: ``(n, n)`` float; values beyond the range count in the first or last bin.
        labels: ``(n,)`` int64.
        bins: number of bins M, at least 2, with centres from 1 down to -1.

    Returns:
        Scalar in [0, 1).

    Raises:
        ValueError: for shapes that do not belong together or fewer than 2 bins.
    """
    if bins < 2:
        raise ValueError(f"bins={bins} must be at least 2")
    same = same_class(similarity, labels)
    centres = torch.linspace(1, -1, bins, dtype=similarity.dtype, device=similarity.device)
    width = 2 / (bins - 1)
    counts = (1 - (similarity.clamp(-1, 1)[:, :, None] - centres).abs() / width).clamp_min(0)  # (n, n, M)
    positives = (counts * same[:, :, None]).sum(dim=1)  # (n, M)
    ranked = counts.sum(dim=1).cumsum(dim=1)
    precision = positives.cumsum(dim=1) / torch.where(ranked > 0, ranked, 1)
    return 1 - (precision * positives / positives.sum(dim=1, keepdim=True)).sum(dim=1).mean()


def _differences(similarity: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each query i and positive j, one row: ``s_ip - s_ij`` for all p, and which p are positives, and not j itself.

    Rows are the T pairs of one class, self pairs included; the full table would have n^3 entries.
    """
    same = same_class(similarity, labels)
    query, item = same.nonzero(as_tuple=True)
    difference = similarity[query] - similarity[query, item][:, None]  # (T, n)
    itself = torch.zeros_like(difference, dtype=torch.bool).scatter_(1, item[:, None], True)
    return difference, same[query], same[query] & ~itself


def _one_minus_ap(positive_steps: Tensor, negative_steps: Tensor, labels: Tensor) -> Tensor:
    """One minus the mean AP from the steps ``(T, n)`` of :func:`_differences`."""
    rank_among_positives = 1 + positive_steps.sum(dim=1)
    precision = rank_among_positives / (rank_among_positives + negative_steps.sum(dim=1))  # (T,)
    class_size = (labels[:, None] == labels).sum(dim=1)
    of_pairs = class_size.repeat_interleave(class_size, output_size=len(precision))  # told, it waits for no device
    return 1 - (precision / of_pairs).sum() / len(labels)
