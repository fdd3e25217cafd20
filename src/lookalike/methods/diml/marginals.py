"""How much each location of an image counts in a comparison with another image.

Symbols of the paper: ``mu^s, mu^t`` the marginals (``alpha^s, alpha^t`` before they are scaled to one), ``z_i`` a
region, ``g`` the global vector. Here ``query`` and ``gallery`` stand for ``s`` and ``t``.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Eq. 8 and 9.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from lookalike.checks import require_known

Marginal = Literal["cross_correlation", "uniform", "swapped"]


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
