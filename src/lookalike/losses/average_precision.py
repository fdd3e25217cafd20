"""Smooth stand-ins for average precision, as functions of a similarity matrix and labels.

Query i ranks the whole batch; its positives ``P_i`` are the items of its class, itself included. Each function returns
one minus the mean over queries of ::

    AP_i = 1 / |P_i| sum_{j in P_i} r_j / (r_j + sum_{p not in P_i} h-(t)),   r_j = 1 + sum_{p in P_i, p != j} h+(t)

with ``t = s_ip - s_ij`` and its own replacements ``h+`` (positives) and ``h-`` (negatives) for the step function.

Source: Contextual, baselines. Smooth-AP is by Brown et al. 2020, SupAP (ROADMAP) by Ramzi et al. 2021, SoftBin-AP by
Revaud et al. 2019. Blackbox-AP, which needs no stand-in, is re-exported.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.checks import require_positive
from lookalike.losses.batch import same_class
from lookalike.losses.blackbox_ap import blackbox_ap_loss

__all__ = ["blackbox_ap_loss", "smooth_ap_loss", "softbin_ap_loss", "sup_ap_loss"]


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
    return 1 - (precision / class_size.repeat_interleave(class_size)).sum() / len(labels)
