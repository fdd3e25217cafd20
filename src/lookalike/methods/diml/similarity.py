"""Structural similarity and distance of images.

Symbols of the paper: ``z_i`` a region, the unit vector of a location, ``g`` the global one, ``T`` the plan. The
functions of the steps (pooling, marginals, plan, ranking) are offered here too, so that the whole mathematics of DIML
can be called from one module.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Eq. 4 to 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.methods.diml.head import grid_pool
from lookalike.methods.diml.matching import Marginal, Match, Matching, Solver, check_images, marginals
from lookalike.methods.diml.retrieval import truncated_ranking
from lookalike.methods.diml.transport import transport_plan

__all__ = [
    "candidate_similarity",
    "grid_pool",
    "location_distance",
    "marginals",
    "structural_distance",
    "structural_similarity",
    "transport_plan",
    "truncated_ranking",
]

Ground = Literal["euclidean", "cosine"]


def structural_similarity(
    query_regions: Tensor,
    query_global: Tensor,
    gallery_regions: Tensor,
    gallery_global: Tensor,
    *,
    marginal: Marginal = "cross_correlation",
    reg: float = 0.05,
    tolerance: float = 1e-6,
    solver: Solver = "sinkhorn",
    plan_gradient: bool = False,
) -> Tensor:
    """Similarity of the locations that the plan brings together, ``sum_ij T_ij <z_i, z_j>``.

    Args:
        query_regions: ``(Q, R, D)`` unit vectors.
        query_global: ``(Q, D)`` unit vectors.
        gallery_regions: ``(G, R, D)``.
        gallery_global: ``(G, D)``.
        marginal: as of `Matching`.
        reg: as of `Matching`.
        tolerance: as of `Matching`.
        solver: as of `Matching`.
        plan_gradient: as of `Matching`.

    Returns:
        ``(Q, G)`` in [-1, 1].

    Raises:
        ValueError: if shapes do not belong together, an option is unknown or a number out of range.
    """
    matching = Matching(marginal, reg, tolerance, solver, plan_gradient)
    images = query_regions, query_global, gallery_regions, gallery_global
    return _in_blocks(matching, images, lambda match: match.similarity)


def structural_distance(
    query_regions: Tensor,
    query_global: Tensor,
    gallery_regions: Tensor,
    gallery_global: Tensor,
    ground: Ground = "euclidean",
    **matching: Any,
) -> Tensor:
    """Distance of the locations that the plan brings together, ``sum_ij T_ij |z_i - z_j|``.

    The plan is always that of the cosine cost, as in the released code, whatever the distance reported.

    Args:
        query_regions: ``(Q, R, D)`` unit vectors.
        query_global: ``(Q, D)`` unit vectors.
        gallery_regions: ``(G, R, D)``.
        gallery_global: ``(G, D)``.
        ground: ``euclidean``, or ``cosine`` for one minus the cosine.
        matching: options of `structural_similarity`.

    Returns:
        ``(Q, G)`` in [0, 2].

    Raises:
        ValueError: if shapes do not belong together, an option is unknown or a number out of range.
    """
    require_known("ground", ground, get_args(Ground))
    images = query_regions, query_global, gallery_regions, gallery_global

    def distance(match: Match) -> Tensor:
        between = location_distance(match.correlation) if ground == "euclidean" else 1 - match.correlation
        return (match.plan * between).sum(dim=(-2, -1))

    return _in_blocks(Matching(**matching), images, distance)


def candidate_similarity(
    query_regions: Tensor,
    query_global: Tensor,
    gallery_regions: Tensor,
    gallery_global: Tensor,
    candidates: Tensor,
    matching: Matching | None = None,
) -> Tensor:
    """`structural_similarity` of every query with its own candidates only, some queries at a time.

    Args:
        query_regions: ``(Q, R, D)`` unit vectors.
        query_global: ``(Q, D)`` unit vectors.
        gallery_regions: ``(G, R, D)``.
        gallery_global: ``(G, D)``.
        candidates: ``(Q, K)`` int64, indices into the gallery.
        matching: how images are matched; by default a `Matching` without arguments.

    Returns:
        ``(Q, K)``.

    Raises:
        ValueError: if shapes do not belong together, or a candidate is beyond the gallery.
    """
    _check_sides(query_regions, query_global, gallery_regions, gallery_global)
    if candidates.ndim != 2 or len(candidates) != len(query_regions) or candidates.dtype != torch.int64:
        raise ValueError(
            f"candidates are {tuple(candidates.shape)} {candidates.dtype}, they must be ({len(query_regions)}, K) int64"
        )
    if candidates.numel() and not 0 <= int(candidates.min()) <= int(candidates.max()) < len(gallery_regions):
        raise ValueError(
            f"candidates hold {int(candidates.min())} to {int(candidates.max())}, "
            f"they must stay in [0, {len(gallery_regions) - 1}], the gallery"
        )
    matching = matching or Matching()
    result = query_regions.new_empty(candidates.shape)
    for rows, columns in matching.blocks(query_regions, gallery_regions, candidates.shape[1]):
        own = of_candidates(candidates[rows, columns], gallery_regions, gallery_global)  # (q, k, R, D), (q, k, D)
        match = matching(query_regions[rows], query_global[rows], *own)
        result[rows, columns] = match.similarity.to(result.dtype)
    return result


def of_candidates(candidates: Tensor, regions: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Regions ``(Q, K, R, D)`` and global vectors ``(Q, K, D)`` of each query's own candidates ``(Q, K)``."""
    items = candidates.flatten()  # by index_select, which is four times as fast as indexing with a tensor
    found = [side.index_select(0, items).view(*candidates.shape, *side.shape[1:]) for side in (regions, vectors)]
    return found[0], found[1]


def location_distance(correlation: Tensor, smoothing: float = 0.0) -> Tensor:
    """Euclidean distance of unit vectors from their cosine, ``sqrt(|x - y|^2 + smoothing)``.

    Args:
        correlation: any shape.
        smoothing: added to the square; 1e-6 in the released training code.

    Returns:
        Shape of ``correlation``; the gradient at distance 0 is 0.
    """
    squared = (2 - 2 * correlation).clamp(min=0) + smoothing
    positive = squared > 0
    # The inner `where` keeps the infinite slope of the root at 0 out of the gradient: 0 times it is NaN.
    return torch.where(positive, squared.where(positive, 1).sqrt(), 0)


def _in_blocks(
    matching: Matching, images: tuple[Tensor, Tensor, Tensor, Tensor], measure: Callable[[Match], Tensor]
) -> Tensor:
    """Something of every pair, ``(Q, G)`` in the dtype of the images, block by block."""
    _check_sides(*images)
    query_regions, query_global, gallery_regions, gallery_global = images
    result = query_regions.new_empty(len(query_regions), len(gallery_regions))
    for rows, columns in matching.blocks(query_regions, gallery_regions, len(gallery_regions)):
        query, gallery = (query_regions[rows], query_global[rows]), (gallery_regions[columns], gallery_global[columns])
        result[rows, columns] = measure(matching(*query, *gallery)).to(result.dtype)
    return result


def _check_sides(query_regions: Tensor, query_global: Tensor, gallery_regions: Tensor, gallery_global: Tensor) -> None:
    check_images(query_regions, query_global, gallery_regions, gallery_global)
    if gallery_regions.ndim != 3:
        raise ValueError(f"gallery_regions has shape {tuple(gallery_regions.shape)}, it must be (G, R, D)")
