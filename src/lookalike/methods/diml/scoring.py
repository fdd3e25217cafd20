"""Representation of images for structural matching, and retrieval by it."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor, nn

from lookalike.methods.diml.matcher import MatcherOptions, StructuralMatcher
from lookalike.methods.diml.model import LocatedEmbedder
from lookalike.methods.diml.representation import Representation
from lookalike.metrics.search import Search, Tensors


def located(model: LocatedEmbedder, images: Tensor) -> dict[str, Tensor]:
    """Representation of images ``(N, 3, H, W)``: ``embedding (N, D)`` and ``regions (N, R, D)``, unit vectors."""
    kept = model.represent(images).to(torch.get_default_dtype())
    return {"embedding": kept.global_vector, "regions": kept.regions}


def structural_matching(
    model: nn.Module | None,
    query: Tensors,
    gallery: Tensors,
    search: Search,
    *,
    truncation: int | None = 100,
    **options: Unpack[MatcherOptions],
) -> dict[str, float]:
    """Metrics of a truncated ranking, without ``mAP``.

    Args:
        model: not read.
        query: ``embedding (Q, D)`` and ``regions (Q, R, D)``, unit vectors.
        gallery: the same of G images.
        search: what is counted.
        truncation: as of `StructuralMatcher`.
        options: likewise.
    """
    matcher = StructuralMatcher(truncation, **options)
    sides = [_representation(side) for side in (query, gallery)]
    return search.by_ranking(matcher.rank(*sides, self_match=search.self_match, depth=search.depth))


@torch.no_grad()
def ordered_by(query: Tensors, gallery: Tensors, candidates: Tensor, **options: Any) -> Tensor:
    """Scores by which `structural_matching` orders candidates.

    Args:
        query: ``embedding (Q, D)`` and ``regions (Q, R, D)``, unit vectors.
        gallery: the same of G images.
        candidates: ``(Q, K)`` int64, indices into the gallery, among the first ``truncation`` by global similarity.
        options: those of `structural_matching`.

    Returns:
        ``(Q, K)``, the sum of global and structural similarity, or the structural one where that alone counts.
    """
    matcher = StructuralMatcher(**options)
    asked, among = _representation(query), _representation(gallery)
    rows = [matcher.similarity(asked[[row]], among[of_query])[0] for row, of_query in enumerate(candidates.tolist())]
    return torch.stack(rows) if rows else candidates.to(asked.regions.dtype)


def _representation(side: Tensors) -> Representation:
    return Representation(side["regions"], side["embedding"])
