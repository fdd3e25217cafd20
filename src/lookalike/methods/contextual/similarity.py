"""Contextual similarity of a batch: the paper's and the variants of its ablation (Table 5, Fig. 16 and 17).

Each variant is a function of the closeness of the batch and of ``alpha``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lookalike.checks import require_known
from lookalike.methods.contextual.closed_form import ContextualSimilarity
from lookalike.methods.contextual.neighbours import Closeness, closeness_of, divisor
from lookalike.methods.contextual.products import minimum_product

SIGMOID_TEMPERATURE = 0.01  # the released code's value; the paper gives none


def contextual_similarity(
    similarity: Tensor, k: int, eps: float, *, alpha: float = 10.0, variant: str = "full"
) -> Tensor:
    """How far the neighbourhoods of two samples agree.

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
