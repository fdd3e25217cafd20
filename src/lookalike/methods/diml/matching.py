"""Compare images location by location: correlations, marginals and plan of every pair.

Symbols of the paper: ``mu^s, mu^t`` the marginals (``alpha^s, alpha^t`` before they are scaled to one), ``z_i`` a
region, ``g`` the global vector. Here ``query`` and ``gallery`` stand for ``s`` and ``t``.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3, Eq. 8 and 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.methods.diml.transport import check_solver, exact_plans, plans, released_plans

Marginal = Literal["cross_correlation", "uniform", "swapped"]
Solver = Literal["sinkhorn", "exact", "released"]
# Values of one (pairs, R, R') block: on a processor what its cache holds, elsewhere what keeps a device busy.
_BLOCK_VALUES_CPU = 2**17
_BLOCK_VALUES_DEVICE = 2**24


def marginals(
    query_regions: Tensor,
    query_global: Tensor,
    gallery_regions: Tensor,
    gallery_global: Tensor,
    kind: Marginal = "cross_correlation",
) -> tuple[Tensor, Tensor]:
    """Weights of the locations of both images of every pair.

    ``cross_correlation``: a location weighs as much as it resembles the other image as a whole, negative cosines count
    as 0. ``uniform``: all alike. ``swapped``: Eq. 8 as it is printed, and as the released training losses have it; the
    weight of a location is then that of the other image's location in the same cell, which contradicts Eq. 4 and the
    released test code.

    Differs: the released code divides by the sum plus 1e-5, so that a plan's mass is slightly below one, and gets NaN
    where no location resembles the other image. Here the weights sum to one, and such an image gets uniform ones.

    Args:
        query_regions: ``(Q, R, D)`` unit vectors.
        query_global: ``(Q, D)`` unit vectors.
        gallery_regions: ``(G, R, D)``, or ``(Q, K, R, D)`` for own candidates of each query.
        gallery_global: ``(G, D)``, or ``(Q, K, D)``.
        kind: ``cross_correlation``, ``uniform`` or ``swapped``.

    Returns:
        Marginals of the query and of the gallery image, both ``(Q, G, R)`` or ``(Q, K, R)``.

    Raises:
        ValueError: if the shapes do not belong together, or ``kind`` is unknown.
    """
    check_images(query_regions, query_global, gallery_regions, gallery_global)
    per_query = gallery_regions.ndim == 4
    # q queries, g gallery images or own candidates; r and s locations of either side; d dimensions.
    query = torch.einsum("qrd,qgd->qgr" if per_query else "qrd,gd->qgr", query_regions, gallery_global)
    gallery = torch.einsum("qgsd,qd->qgs" if per_query else "gsd,qd->qgs", gallery_regions, query_global)
    return marginals_of(query, gallery, kind)


def marginals_of(query: Tensor, gallery: Tensor, kind: Marginal = "cross_correlation") -> tuple[Tensor, Tensor]:
    """`marginals` from the cosines of each location with the other image's global vector, ``(..., R)`` both.

    Raises:
        ValueError: if ``kind`` is unknown, or ``swapped`` for images with different numbers of locations.
    """
    require_known("kind", kind, get_args(Marginal))
    if kind == "uniform":
        return torch.full_like(query, 1 / query.shape[-1]), torch.full_like(gallery, 1 / gallery.shape[-1])
    if kind == "swapped":
        if query.shape != gallery.shape:
            raise ValueError(
                f"kind='swapped' needs as many locations on both sides, got {query.shape[-1]} and {gallery.shape[-1]}"
            )
        query, gallery = gallery, query
    return _shares(query), _shares(gallery)


def check_images(query_regions: Tensor, query_global: Tensor, gallery_regions: Tensor, gallery_global: Tensor) -> None:
    """Refuse regions and global vectors that do not belong together.

    Raises:
        ValueError: naming the shapes.
    """
    shapes = [tuple(each.shape) for each in (query_regions, query_global, gallery_regions, gallery_global)]
    query, query_vector, gallery, gallery_vector = shapes
    fits = (
        len(query) == 3
        and len(gallery) in (3, 4)
        and query_vector == (query[0], query[2])
        and gallery_vector == (*gallery[:-2], gallery[-1])
        and query[2] == gallery[-1]
        and (len(gallery) == 3 or gallery[0] == query[0])
        and 0 not in (query[1], query[2], gallery[-2])
    )
    if not fits:
        raise ValueError(
            f"query_regions {query}, query_global {query_vector}, gallery_regions {gallery} and gallery_global "
            f"{gallery_vector} must be (Q, R, D), (Q, D), (G, R, D) and (G, D), or (Q, K, R, D) and (Q, K, D) for own "
            "candidates of each query"
        )


def _shares(correlation: Tensor) -> Tensor:
    """Positive part, scaled to a sum of one; uniform where nothing is positive."""
    weight = correlation.relu()
    total = weight.sum(dim=-1, keepdim=True)
    positive = total > torch.finfo(weight.dtype).tiny  # below, a quotient would not be exact any more
    return torch.where(positive, weight / total.where(positive, 1), 1 / weight.shape[-1])


@dataclass(frozen=True)
class Match:
    """Pairs of Q query images with G gallery images, or with K candidates each.

    Attributes:
        correlation: ``(Q, G, R, R')`` cosine of every location of the query with every one of the gallery image.
        query_marginal: ``(Q, G, R)``.
        gallery_marginal: ``(Q, G, R')``.
        plan: ``(Q, G, R, R')``.
    """

    correlation: Tensor
    query_marginal: Tensor
    gallery_marginal: Tensor
    plan: Tensor

    @property
    def similarity(self) -> Tensor:
        """Structural similarity ``(Q, G)``."""
        return (self.plan * self.correlation).sum(dim=(-2, -1))


@dataclass(frozen=True)
class Matching:
    """Matching of images by a transport plan between their locations.

    Attributes:
        marginal: weights of the locations: ``cross_correlation``, ``uniform`` or ``swapped``, see `marginals`.
        reg: weight of the entropy, see `transport_plan`.
        tolerance: largest error of the plans, see `transport_plan`.
        solver: ``sinkhorn``; ``exact`` has no entropy and takes no notice of ``reg``; ``released`` stops early, all
            candidates of a query together (see `released_plans`), and takes no notice of ``tolerance``.
        plan_gradient: let gradients reach the plan and its marginals too. Differs: the paper calls the iterations fully
            differentiable; in the released losses the plan is a constant, the default here. Exact and released plans
            always are.

    Raises:
        ValueError: if an option is unknown or a number out of range.
    """

    marginal: Marginal = "cross_correlation"
    reg: float = 0.05
    tolerance: float = 1e-6
    solver: Solver = "sinkhorn"
    plan_gradient: bool = False

    def __post_init__(self) -> None:
        require_known("marginal", self.marginal, get_args(Marginal))
        require_known("solver", self.solver, get_args(Solver))
        check_solver(self.reg, self.tolerance)

    def __call__(
        self, query_regions: Tensor, query_global: Tensor, gallery_regions: Tensor, gallery_global: Tensor
    ) -> Match:
        """Match pairs, all of them at once.

        Args:
            query_regions: ``(Q, R, D)`` unit vectors.
            query_global: ``(Q, D)`` unit vectors.
            gallery_regions: ``(G, R', D)``, or ``(Q, K, R', D)`` for own candidates of each query.
            gallery_global: ``(G, D)``, or ``(Q, K, D)``.

        Returns:
            The pairs, ``(Q, G)`` or ``(Q, K)`` of them; half precision is computed in float32.

        Raises:
            ValueError: if the shapes do not belong together, or a vector is not finite.
        """
        pairs = self.compared(query_regions, query_global, gallery_regions, gallery_global)
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.plan_gradient):
            plan = self._plans(1 - pairs[0], *pairs[1:])
        return Match(*pairs, plan)

    def compared(
        self, query_regions: Tensor, query_global: Tensor, gallery_regions: Tensor, gallery_global: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Correlation and both marginals of `Match`, all that a plan follows from; arguments as of a call.

        Raises:
            ValueError: if the shapes do not belong together.
        """
        check_images(query_regions, query_global, gallery_regions, gallery_global)
        precise = torch.promote_types(query_regions.dtype, torch.float32)
        query, query_vector, gallery, gallery_vector = (
            part.to(precise) for part in (query_regions, query_global, gallery_regions, gallery_global)
        )
        # The query's global vector goes along as one more location: reading the gallery twice would cost more.
        whole = torch.cat([query, query_vector.unsqueeze(1)], dim=1)  # (Q, R + 1, D)
        regions, vectors = ("qgsd", "qgd") if gallery.ndim == 4 else ("gsd", "gd")
        with torch.autocast(query.device.type, enabled=False):
            product = torch.einsum(f"qrd,{regions}->qgrs", whole, gallery)  # (Q, G, R + 1, R')
            attention = torch.einsum(f"qrd,{vectors}->qgr", query, gallery_vector)  # (Q, G, R)
            correlation = product[:, :, :-1].contiguous()  # (Q, G, R, R')
            with torch.set_grad_enabled(torch.is_grad_enabled() and self.plan_gradient):
                return correlation, *marginals_of(attention, product[:, :, -1], self.marginal)

    def plans(self, cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Plans ``(n, R, R')`` of single pairs, each by itself, from costs and marginals that sum to one.

        Raises:
            ValueError: for the solver that looks at all candidates of a query together.
        """
        if self.solver == "released":
            raise ValueError("solver 'released' solves all candidates of a query together, not single pairs")
        if self.solver == "exact":
            return exact_plans(cost, rows, columns)
        return plans(cost, rows, columns, self.reg, self.tolerance)

    def blocks(self, query_regions: Tensor, gallery_regions: Tensor, width: int) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of blocks of a ``(Q, width)`` result that are best matched at once.

        All candidates of a query stay together where the solver looks at them together.
        """
        values = _BLOCK_VALUES_CPU if query_regions.device.type == "cpu" else _BLOCK_VALUES_DEVICE
        pairs = max(1, values // (query_regions.shape[1] * gallery_regions.shape[1]))
        columns = max(1, width if self.solver == "released" else min(width, pairs))
        rows = max(1, pairs // columns)
        for top in range(0, len(query_regions) if width else 0, rows):
            for left in range(0, width, columns):
                yield slice(top, top + rows), slice(left, left + columns)

    def _plans(self, cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        if self.solver == "released":
            sets = zip(cost.detach().mT, columns.detach(), rows.detach(), strict=True)
            solved = [released_plans(*candidates, self.reg).mT for candidates in sets]
            return torch.stack(solved) if solved else torch.zeros_like(cost)
        flat = cost.flatten(0, 1), rows.flatten(0, 1), columns.flatten(0, 1)  # (Q G, R, R'), ...
        return self.plans(*flat).view(cost.shape)
