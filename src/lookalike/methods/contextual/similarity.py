"""Contextual similarity of a batch (paper, Eq. 1 to 4) and the variants of its ablation (Table 5, Fig. 16 and 17).

Each variant is a function of the closeness of the batch and of ``alpha``. Automatic differentiation of Eq. 2-4 takes
nine dense matrix products, three of them forward. Written out there are five, two of them forward, and each has a left
side that is zero outside the neighbourhoods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from lookalike.base.checks import require_known
from lookalike.methods.contextual.products import check_square, minimum_product, plus_transpose, product

SIGMOID_TEMPERATURE = 0.01  # the released code's value; the paper gives none


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
    """Closeness of a batch and its thresholds: ``j`` is a neighbour of ``i`` if ``values_ij >= near_i``.

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
    return sizes.masked_fill(sizes <= 0, torch.inf)


class ContextualSimilarity(Function):
    """Eq. 2-4 on the closeness of a batch: ``(values, near, half, alpha) -> w``, see ``neighbours.Closeness``."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, near: Tensor, half: Tensor, alpha: float) -> Tensor:
        """Contextual similarity ``(n, n)``, symmetric and in [0, 1]."""
        dtype = values.dtype
        neighbours, half_neighbours = values >= near, values >= half  # N, H
        present = neighbours.to(dtype)
        sizes = present.sum(dim=1, keepdim=True)  # r, (n, 1)
        others = len(sizes) - sizes
        outside = divisor(others)  # c
        agreement = product(neighbours, present.T)  # M+
        neither = (agreement - sizes.T).add_(others)  # M- = n - r_i - r_j + M+, all whole numbers
        agreement.div_(sizes).add_(neither.div_(outside)).div_(2)  # P
        del neither
        half_columns = half_neighbours.T.contiguous()  # H^T
        reciprocal = half_neighbours & half_columns  # R
        # q is 0 where rounding puts duplicates before the sample itself and leaves it without a reciprocal neighbour
        expansion_sizes = divisor(reciprocal.sum(dim=1, keepdim=True, dtype=dtype))  # q
        intersection = agreement * present  # W1
        expanded = product(reciprocal, intersection).div_(expansion_sizes)  # W2 = R W1 / q
        ctx.alpha = alpha  # type: ignore[attr-defined]
        ctx.save_for_backward(
            present, half_columns, reciprocal, agreement, intersection, expanded, sizes, outside, expansion_sizes
        )
        return plus_transpose(expanded).div_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Gradient ``(n, n)`` of the closeness."""
        saved: tuple[Tensor, ...] = ctx.saved_tensors  # type: ignore[attr-defined]
        present, half_columns, reciprocal, agreement, intersection, expanded, sizes, outside, expansion_sizes = saved
        alpha: float = ctx.alpha  # type: ignore[attr-defined]
        of_expanded = plus_transpose(gradient).div_(2 * expansion_sizes)  # U
        of_intersection = product(reciprocal, of_expanded)  # G1 = R U, as R = R^T

        # N: as the outer factor of W1 and inside both counts of P; their normalisers are constants
        of_agreement = of_intersection * present  # GP
        inside_share, outside_share = 0.5 / sizes, 0.5 / outside  # A = GP inside_share, B = GP outside_share, by rows
        of_outside = of_agreement.sum(dim=1, keepdim=True) * outside_share + of_agreement.T @ outside_share
        # (A + A^T) N - (B + B^T)(1 - N) = (A + A^T + B + B^T) N - the row sums of B + B^T
        scaled = plus_transpose(of_agreement.mul_(inside_share + outside_share))
        to_neighbours = product(scaled, present).sub_(of_outside)
        to_neighbours.addcmul_(of_intersection, agreement)  # GN
        del of_agreement, scaled, of_intersection

        # H: through R in the numerator and in q
        to_half_neighbours = plus_transpose(product(intersection, of_expanded.T))  # W1 U^T + U W1^T
        of_sizes = of_expanded.mul_(expanded).sum(dim=1, keepdim=True)
        to_half_neighbours.sub_(of_sizes).sub_(of_sizes.T).mul_(half_columns)  # GH = (GR + GR^T) * H^T
        return to_neighbours.add_(to_half_neighbours).mul_(alpha), None, None, None


def contextual_similarity(
    similarity: Tensor, k: int, eps: float, *, alpha: float = 10.0, variant: str = "full"
) -> Tensor:
    """Agreement of the neighbourhoods of every two samples.

    Args:
        similarity: ``(n, n)`` cosine similarities, the diagonal included.
        k: neighbours of a sample, itself counted, ``1 <= k <= n``.
        eps: margin on the squared Euclidean distance, used as passed in every variant.
        alpha: gradient of the Heaviside step; without effect on the value and in the sigmoids.
        variant: one of ``VARIANTS``:
            ``full`` the paper's; ``l1`` the neighbour mask (Eq. 32); ``l1_sigmoid`` the same through a sigmoid;
            ``l2`` after the intersection (Eq. 33); ``skip_intersection`` query expansion of the mask; ``min`` a
            minimum (``torch.minimum``) for every logical and; ``sigmoid`` a sigmoid for both masks; ``positive_only``
            without the shared non-neighbours; ``positive_only_no_expansion`` the same without query expansion
            (Eq. 16); ``no_stop_gradient`` with gradient through the sizes of the neighbourhoods;
            ``detach_reciprocal`` without gradient through the size of the query expansion (Fig. 17).

    Returns:
        ``(n, n)`` in [0, 1] and the dtype of ``similarity``; symmetric unless the variant leaves the expansion out
        (``l1``, ``l1_sigmoid``, ``l2``, ``positive_only_no_expansion``). Differentiable once.

    Raises:
        ValueError: if ``similarity`` is not square, ``k`` outside ``[1, n]``, ``eps`` negative or ``variant`` unknown.

    Source: Supervised Metric Learning to Rank, Eq. 1-4.
    Differs: where a neighbourhood is the whole batch, the share of common non-neighbours (0 / 0, NaN in the released
    code) is 0. ``positive_only`` has no factor 1/2, as in the released code. The masks have the dtype of the input.
    """
    require_known("variant", variant, VARIANTS)
    return VARIANTS[variant](closeness_of(similarity, k, eps), alpha)


def shared_neighbours(neighbours: Tensor, *, detach_sizes: bool = True) -> Tensor:
    """``M+ / r``: the share of the row's neighbours that are the column's too, ``(n, n)``; 0 where it has none."""
    sizes = neighbours.sum(dim=1, keepdim=True)  # (n, 1)
    return neighbours @ neighbours.T / divisor(sizes.detach() if detach_sizes else sizes)


def agreement(neighbours: Tensor, *, detach_sizes: bool = True) -> Tensor:
    """``P``: the mean of the shares of common neighbours and of common non-neighbours (the paper's step 2)."""
    inside = shared_neighbours(neighbours, detach_sizes=detach_sizes)
    outside = shared_neighbours(1 - neighbours, detach_sizes=detach_sizes)  # M- / c
    return (inside + outside) / 2


def query_expansion(intersection: Tensor, half_neighbours: Tensor, *, detach_sizes: bool = False) -> Tensor:
    """Mean of the rows of a sample's reciprocal neighbours, made symmetric (the paper's step 3, Eq. 4)."""
    reciprocal = half_neighbours * half_neighbours.T
    sizes = reciprocal.sum(dim=1, keepdim=True)  # (n, 1)
    expanded = reciprocal @ intersection / divisor(sizes.detach() if detach_sizes else sizes)
    return (expanded + expanded.T) / 2


def _full(closeness: Closeness, alpha: float) -> Tensor:
    contextual: Tensor = ContextualSimilarity.apply(*closeness, alpha)
    return contextual


def _l1(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, _ = closeness.step(alpha)
    return neighbours


def _l1_sigmoid(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, _ = closeness.soft_step(SIGMOID_TEMPERATURE)
    return neighbours


def _l2(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, _ = closeness.step(alpha)
    return agreement(neighbours) * neighbours


def _skip_intersection(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, half_neighbours = closeness.step(alpha)
    return query_expansion(neighbours, half_neighbours)


def _min(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, half_neighbours = closeness.step(alpha)
    others = 1 - neighbours
    shared = minimum_product(neighbours, neighbours.T) / neighbours.sum(dim=1, keepdim=True).detach()
    shared_others = minimum_product(others, others.T) / divisor(others.sum(dim=1, keepdim=True).detach())
    intersection = torch.minimum((shared + shared_others) / 2, neighbours)
    reciprocal = torch.minimum(half_neighbours, half_neighbours.T)
    expanded = minimum_product(reciprocal, intersection) / divisor(reciprocal.sum(dim=1, keepdim=True))
    return (expanded + expanded.T) / 2


def _sigmoid(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, half_neighbours = closeness.soft_step(SIGMOID_TEMPERATURE)
    return query_expansion(agreement(neighbours) * neighbours, half_neighbours)


def _positive_only(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, half_neighbours = closeness.step(alpha)
    return query_expansion(shared_neighbours(neighbours) * neighbours, half_neighbours)


def _positive_only_no_expansion(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, _ = closeness.step(alpha)
    return shared_neighbours(neighbours) * neighbours


def _no_stop_gradient(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, half_neighbours = closeness.step(alpha)
    return query_expansion(agreement(neighbours, detach_sizes=False) * neighbours, half_neighbours)


def _detach_reciprocal(closeness: Closeness, alpha: float) -> Tensor:
    neighbours, half_neighbours = closeness.step(alpha)
    return query_expansion(agreement(neighbours) * neighbours, half_neighbours, detach_sizes=True)


VARIANTS: dict[str, Callable[[Closeness, float], Tensor]] = {
    "full": _full,
    "l1": _l1,
    "l1_sigmoid": _l1_sigmoid,
    "l2": _l2,
    "skip_intersection": _skip_intersection,
    "min": _min,
    "sigmoid": _sigmoid,
    "positive_only": _positive_only,
    "positive_only_no_expansion": _positive_only_no_expansion,
    "no_stop_gradient": _no_stop_gradient,
    "detach_reciprocal": _detach_reciprocal,
}
