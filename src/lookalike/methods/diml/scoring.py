"""What is kept of images for structural matching, and retrieval by it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lookalike.methods.diml.model import DIML
from lookalike.methods.diml.representation import Representation
from lookalike.metrics.search import Search, Tensors


def located(model: nn.Module, images: Tensor, **options: Any) -> dict[str, Tensor]:
    """What is kept of images ``(N, 3, H, W)``: ``embedding (N, D)`` and ``regions (N, R, D)``, unit vectors.

    Args:
        model: an embedder trained in any way, or a `DIML`.
        images: normalised.
        options: ``side``, ``pooling`` and ``global_vector`` of `DIML`, for an embedder.
    """
    matcher = model if isinstance(model, DIML) else DIML(model, "trunk", **options)
    representation = matcher.represent(images)
    kept = representation.to(torch.get_default_dtype())
    return {"embedding": kept.global_vector, "regions": kept.regions}


def structural_matching(
    model: nn.Module, query: Tensors, gallery: Tensors, search: Search, *, truncation: int | None = 100, **options: Any
) -> dict[str, float]:
    """Metrics of a truncated ranking, without ``mAP``.

    Args:
        model: an embedder trained in any way, or a `DIML`.
        query: ``embedding (Q, D)`` and ``regions (Q, R, D)``, unit vectors.
        gallery: the same of G images.
        search: what is counted.
        truncation: K, how many candidates are reordered; ``None`` for all.
        options: ``score``, ``marginal``, ``reg``, ``tolerance`` and ``solver`` of `DIML`.
    """
    matcher = matcher_of(model, truncation=truncation, **options)
    sides = [Representation(side["regions"], side["embedding"]) for side in (query, gallery)]
    return search.by_ranking(matcher.rank(*sides, self_match=search.self_match, depth=search.depth))


def matcher_of(model: nn.Module, **options: Any) -> DIML:
    """A `DIML` with the options of a scoring, around an embedder trained in any way or that of a `DIML`."""
    return DIML(model.embedder if isinstance(model, DIML) else model, "trunk", **options)
