"""Who is near whom in a batch, and the Heaviside step with a constant gradient (paper, Eq. 1 and 2)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from lookalike.methods.contextual.cosine import check_square


def check_neighbours(k: int, samples: int) -> None:
    """Refuse a ``k`` outside ``[1, samples]`` with a ``ValueError``."""
    if not 1 <= k <= samples:
        raise ValueError(f"k={k} is outside [1, {samples}], the number of samples")


class StraightThroughStep(Function):
    """``1`` where the closeness reaches the threshold, else ``0``; the gradient is ``alpha`` everywhere (Eq. 1)."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, threshold: Tensor, alpha: float) -> Tensor:
        """Indicator of ``values >= threshold`` in the dtype of ``values``."""
        ctx.alpha = alpha  # type: ignore[attr-defined]
        return (values >= threshold).to(values.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The gradient times ``alpha``, near and far pairs alike."""
        return ctx.alpha * gradient, None, None  # type: ignore[attr-defined]


class Closeness(NamedTuple):
    """Closeness of a batch and what a neighbour needs of it: ``j`` is a neighbour of ``i`` if ``values_ij >= near_i``.

    Attributes:
        values: ``(n, n)``, minus the squared Euclidean distance plus the margin, ``-D + eps``.
        near: ``(n, 1)``, reached by the ``k`` nearest, ``-D(k)``; a constant.
        half: ``(n, 1)``, reached by the ``k // 2`` nearest; a constant.
    """

    values: Tensor
    near: Tensor
    half: Tensor

    def step(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Masks ``(n, n)`` of the ``k`` and of the ``k // 2`` nearest, with gradient ``alpha`` everywhere."""
        neighbours: Tensor = StraightThroughStep.apply(self.values, self.near, alpha)
        half_neighbours: Tensor = StraightThroughStep.apply(self.values, self.half, alpha)
        return neighbours, half_neighbours

    def soft_step(self, temperature: float) -> tuple[Tensor, Tensor]:
        """The same masks through a sigmoid. Source: the paper, Eq. 21. Differs: its printed sign would decrease."""
        return (
            torch.sigmoid((self.values - self.near) / temperature),
            torch.sigmoid((self.values - self.half) / temperature),
        )


def closeness_of(similarity: Tensor, k: int, eps: float) -> Closeness:
    """Closeness of every pair and of the ``k``-th and ``k // 2``-th nearest of every row.

    Samples as far as the k-th are neighbours too, so that a row can have more than ``k``.

    Args:
        similarity: ``(n, n)`` cosine similarities, the diagonal included; row ``i`` ranks the batch for sample ``i``.
        k: neighbours, the sample itself counted, ``1 <= k <= n``.
        eps: margin on the squared Euclidean distance, 0 or more.

    Raises:
        ValueError: if ``similarity`` is not square, ``k`` is outside ``[1, n]`` or ``eps`` is negative.

    Source: Supervised Metric Learning to Rank, Eq. 2.
    Differs: ``k = 1``, which the paper leaves open, takes one neighbour (the sample itself) for the half as well.
    The released code clamps ``D`` at 0 first, which stops the gradient of duplicates by rounding; here it is unclamped.
    """
    check_square(similarity)
    check_neighbours(k, len(similarity))
    if not eps >= 0:
        raise ValueError(f"eps={eps} is negative, 0 or more is needed")
    nearness = 2 * similarity - 2  # -D; eps comes after, so that without it the k-th neighbour is met exactly
    largest = nearness.detach().topk(k, dim=1).values  # (n, k), descending
    half = max(k // 2, 1)
    return Closeness(nearness + eps, largest[:, k - 1 : k], largest[:, half - 1 : half])


def divisor(sizes: Tensor) -> Tensor:
    """``sizes``, infinite where 0: the share of an empty set, 0 / 0, then is 0 and carries no gradient."""
    return torch.where(sizes > 0, sizes, torch.inf)
