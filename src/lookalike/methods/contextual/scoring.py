"""Retrieval with re-ranking by shared neighbours (Table 10)."""

from __future__ import annotations

import torch
from torch import nn

from lookalike.methods.contextual.reranking import Reranker
from lookalike.metrics.search import Search, Tensors


def shared_neighbours(
    model: nn.Module | None, query: Tensors, gallery: Tensors, search: Search, *, k: int, beta: float = 0.1
) -> dict[str, float]:
    """Metrics of a test set that searches itself, its scores those of `rerank`.

    Args:
        model: not read.
        query: ``embedding (N, D)``.
        gallery: the same.
        search: what is counted.
        k: neighbours of an image, itself counted.
        beta: weight of the shared neighbours.

    Raises:
        ValueError: if queries search another gallery: the neighbourhoods are those of one set.
    """
    if not search.self_match:
        raise ValueError("scoring 'shared_neighbours' needs a test set that searches itself, not queries and gallery")
    scores = Reranker(query["embedding"], k, beta)
    images = torch.arange(len(search.query_labels), device=query["embedding"].device)
    return search.by_score(images, images, score=lambda some, others: scores(some))
