"""Retrieval re-ranked by the neighbourhoods that images share (paper, Eq. 16 and Table 10)."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array, vstack
from torch import Tensor, nn

from lookalike.methods.contextual.products import check_square
from lookalike.methods.contextual.similarity import check_neighbours
from lookalike.metrics.search import Search, Tensors

BLOCK = 256  # rows of an N x N matrix that are held at once


def rerank(similarity: Tensor, k: int, beta: float = 0.1) -> Tensor:
    """Scores of a test set against itself: ``beta`` shared neighbours plus ``1 - beta`` similarity.

    Args:
        similarity: ``(N, N)`` cosine similarities, row ``i`` the query; the diagonal included.
        k: neighbours of an image, itself counted, ``1 <= k <= N``; ties with the k-th are neighbours too.
        beta: weight of the shared neighbours, in [0, 1].

    Returns:
        ``(N, N)`` in [0, 1] and the dtype of ``similarity``, row ``i`` the query; not symmetric. The diagonal is
        scored like any pair: leave it out of the retrieval.

    Raises:
        ValueError: if ``similarity`` is not square, ``k`` outside ``[1, N]`` or ``beta`` outside [0, 1].

    Source: Supervised Metric Learning to Rank, Eq. 16 and Table 10 (k 16 and 32 for CUB and Cars, 4 for SOP).
    Differs: the paper leaves ``eps`` open, here 0; Eq. 15 and 17 print the comparison of distances on similarities.
    """
    check_square(similarity)
    check_neighbours(k, len(similarity))
    _check_beta(beta)
    return _scores(similarity, _shared_neighbours(_neighbours(similarity, k)), beta)


class Reranker:
    """``rerank`` for test sets whose full matrix does not fit: holds ``k`` pairs per image and scores on demand.

    Metrics take it by index: with ``images = torch.arange(N)`` as query and as gallery,
    ``score=lambda queries, gallery: reranker(queries)`` fits ``retrieval_metrics_from_embeddings``.

    Args:
        embeddings: ``(N, D)``, not yet normalised.
        k: neighbours of an image, itself counted, ``1 <= k <= N``.
        beta: weight of the shared neighbours, in [0, 1].

    Raises:
        ValueError: if ``embeddings`` are not ``(N, D)``, ``k`` is outside ``[1, N]`` or ``beta`` outside [0, 1].
    """

    def __init__(self, embeddings: Tensor, k: int, beta: float = 0.1) -> None:
        if embeddings.ndim != 2:
            raise ValueError(f"embeddings have shape {tuple(embeddings.shape)}, (N, D) is needed")
        check_neighbours(k, len(embeddings))
        _check_beta(beta)
        self._beta = beta
        self._embeddings = F.normalize(embeddings, dim=1)
        blocks = [_neighbours(queries @ self._embeddings.T, k) for queries in torch.split(self._embeddings, BLOCK)]
        self._shared = _shared_neighbours(vstack(blocks, format="csr"))

    def __call__(self, queries: Tensor) -> Tensor:
        """Scores ``(b, N)`` of the images with indices ``queries`` ``(b,)``: these rows of ``rerank``."""
        similarity = self._embeddings[queries] @ self._embeddings.T  # (b, N)
        return _scores(similarity, self._shared[queries.cpu().numpy()], self._beta)


def _check_beta(beta: float) -> None:
    if not 0 <= beta <= 1:
        raise ValueError(f"beta={beta} is outside [0, 1]")


def _neighbours(similarity: Tensor, k: int) -> csr_array:
    """``(b, N)`` ones where the gallery image is no farther from the query than its k-th nearest."""
    distance = 2 - 2 * similarity
    farthest = distance.topk(k, dim=1, largest=False).values[:, -1:]  # (b, 1)
    rows, columns = (distance <= farthest).nonzero(as_tuple=True)
    ones = np.ones(len(rows), dtype=np.int32)
    return csr_array((ones, (rows.cpu().numpy(), columns.cpu().numpy())), shape=tuple(similarity.shape))


def _shared_neighbours(neighbours: csr_array) -> csr_array:
    """``(N, N)`` shares of the row's neighbours that are the column's too, for columns that are its neighbours."""
    blocks = []
    for start in range(0, neighbours.shape[0], BLOCK):
        rows = neighbours[start : start + BLOCK]
        shared = (rows @ neighbours.T).multiply(rows).tocsr()
        sizes = np.repeat(rows.sum(axis=1), np.diff(shared.indptr))
        blocks.append(csr_array((shared.data / sizes, shared.indices, shared.indptr), shape=shared.shape))
    return vstack(blocks, format="csr")


def _scores(similarity: Tensor, shared: csr_array, beta: float) -> Tensor:
    """``beta`` times ``shared`` plus ``1 - beta`` times ``exp(2 s - 2)``, ``(b, N)``."""
    scores = (1 - beta) * torch.exp(2 * similarity - 2)
    pairs = shared.tocoo()
    rows, columns = (torch.from_numpy(index).long().to(scores.device) for index in pairs.coords)
    scores[rows, columns] += beta * torch.from_numpy(pairs.data).to(scores)
    return scores


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
