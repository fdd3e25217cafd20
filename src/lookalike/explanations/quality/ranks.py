"""Rank correlation of many rows at once, each over values of its own choice."""

from __future__ import annotations

import torch
from torch import Tensor


def spearman(first: Tensor, second: Tensor, kept: Tensor | None = None) -> Tensor:
    """Spearman's correlation of each row; equal values share their mean rank.

    Args:
        first: ``(N, M)`` finite.
        second: ``(N, M)`` finite.
        kept: ``(N, M)`` bool, the values that count; all of them without.

    Returns:
        ``(N,)`` float64 in [-1, 1]; NaN for a row with fewer than two values, or with equal ones only.

    Raises:
        ValueError: if shapes differ, or a value is not finite.
    """
    kept = torch.ones_like(first, dtype=torch.bool) if kept is None else kept
    if not first.shape == second.shape == kept.shape or first.ndim != 2:
        shapes = ", ".join(str(tuple(each.shape)) for each in (first, second, kept))
        raise ValueError(f"first, second and kept must all be (N, M), not {shapes}")
    if not bool((first.isfinite() & second.isfinite()).all()):
        raise ValueError("first and second must hold finite numbers only, not NaN or infinity")
    counts = kept.sum(dim=1, keepdim=True)
    one, other = (_centred(_ranks(values.double(), kept), kept, counts) for values in (first, second))
    return (one * other).sum(dim=1) / (one.square().sum(dim=1) * other.square().sum(dim=1)).sqrt()


def mean_ranks(values: Tensor) -> Tensor:
    """Ranks of each row ``(N, M)`` from 0, float64; equal values share their mean rank."""
    return _ranks(values.double(), torch.ones_like(values, dtype=torch.bool))


def _ranks(values: Tensor, kept: Tensor) -> Tensor:
    """Mean ranks ``(N, M)`` from 0; what is not kept comes after all others."""
    values = values.masked_fill(~kept, torch.inf)
    ordered = values.sort(dim=1).values
    below, up_to = (torch.searchsorted(ordered, values, right=right) for right in (False, True))
    return (below + up_to - 1).double() / 2


def _centred(ranks: Tensor, kept: Tensor, counts: Tensor) -> Tensor:
    mean = ranks.masked_fill(~kept, 0).sum(dim=1, keepdim=True) / counts
    return (ranks - mean).masked_fill(~kept, 0)
