"""Average precision on true ranks, differentiated as a black box.

Source: Contextual, baselines; Blackbox-AP is by Rolinek et al. 2020.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lookalike.checks import require_positive
from lookalike.losses.batch import same_class


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
