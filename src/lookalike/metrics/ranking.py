"""Nearest-neighbour search with one result whatever the back end.

All back ends rank by the similarities of ``lookalike.metrics.cosine``, which are exact, in the stable order of
``lookalike.metrics.order``. The torch back end computes all of them, block by block. The faiss back end lets
``IndexFlatIP`` propose candidates in float32, computes theirs anew, and accepts the result only where no item left
out can reach the k-th: float32 sums are off by less than a known bound. The other queries, those with more near
duplicates than there are spare candidates, are searched by the torch back end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookalike.metrics.cosine import exact_cosine, exact_cosine_of_pairs, fixed_point_pair
from lookalike.metrics.order import row_blocks, stable_topk

Backend = Literal["faiss", "torch"]
Parts = tuple[Tensor, ...]

SPARE_CANDIDATES = 64
GATHERED = 2**22
"""Numbers of candidates' vectors gathered at once."""
FEWEST_PER_THREAD = 800
"""Queries times D from which a thread of faiss is faster with a matrix product (measured in its pull request 5109)."""


def nearest(
    query: Tensor,
    gallery: Tensor,
    k: int,
    *,
    self_match: bool,
    backend: Backend | None = None,
    block: int = 1024,
) -> tuple[Tensor, Tensor]:
    """The ``k`` gallery items of greatest cosine similarity to each query, lower index first on ties.

    Args:
        query: ``(Q, D)`` float, of any length.
        gallery: ``(G, D)`` of the same dtype and device.
        k: ``1 <= k <= G``, with ``self_match`` ``k <= G - 1``.
        self_match: query i is gallery item i and left out by its index; an equal item elsewhere stays.
        backend: by default that of ``default_backend``. All give the same bits.
        block: queries scored at once.

    Returns:
        Similarities ``(Q, k)`` in the input's dtype (float32 for half precision), descending, and indices ``(Q, k)``
        int64.

    Raises:
        ValueError: if shapes or dtypes do not belong together, ``k`` or ``block`` is out of range, ``backend`` is
            unknown or cannot search the device, or an embedding is not finite.
    """
    width = len(gallery) - self_match
    if self_match and len(query) != len(gallery):
        raise ValueError(f"self_match=True needs Q = G, not {len(query)} queries and {len(gallery)} gallery items")
    if not 1 <= k <= width:
        raise ValueError(f"k={k} is outside [1, {width}], the gallery size{' less the query' if self_match else ''}")
    if block < 1:
        raise ValueError(f"block={block} must be at least 1")
    backend = default_backend(query.device) if backend is None else backend
    if backend not in ("faiss", "torch"):
        raise ValueError(f"backend={backend!r} is not one of 'faiss', 'torch'")
    if backend == "faiss" and query.device.type != "cpu":
        raise ValueError(f"backend='faiss' searches tensors on the CPU, not on {query.device}; use backend='torch'")

    query_parts, gallery_parts = fixed_point_pair(query, gallery)
    itself = torch.arange(len(query), device=query.device) if self_match else None
    search = _search_with_faiss if backend == "faiss" else _search_with_torch
    scores, indices = search(query_parts, gallery_parts, k, itself, block)
    return scores.to(torch.promote_types(query.dtype, torch.float32)), indices


def default_backend(device: torch.device) -> Backend:
    """``"faiss"`` for tensors on the CPU, ``"torch"`` elsewhere."""
    return "faiss" if device.type == "cpu" else "torch"


def describe_backend(backend: Backend) -> str:
    """Name and version of a back end, to be recorded beside results."""
    if backend == "torch":
        return f"torch {torch.__version__}, exact float64 products"
    import faiss

    return f"faiss {faiss.__version__} IndexFlatIP, candidates scored anew by torch {torch.__version__}"


def _search_with_torch(
    query: Parts, gallery: Parts, k: int, itself: Tensor | None, block: int
) -> tuple[Tensor, Tensor]:
    best, indices = _empty_result(query, k)
    for rows in _row_slices(len(best), block):
        owners = None if itself is None else itself[rows]
        best[rows], indices[rows] = _search_block(_take(query, rows), gallery, k, owners)
    return best, indices


def _search_block(query: Parts, gallery: Parts, k: int, itself: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = exact_cosine(query, gallery)  # (b, G)
    if itself is not None:
        scores.scatter_(1, itself[:, None], -torch.inf)
    best, indices = _empty_result(query, k)
    start = 0
    for part in row_blocks(scores):
        best[start : start + len(part)], indices[start : start + len(part)] = stable_topk(part, k)
        start += len(part)
    return best, indices


def _search_with_faiss(
    query: Parts, gallery: Parts, k: int, itself: Tensor | None, block: int
) -> tuple[Tensor, Tensor]:
    import faiss

    size, dim = gallery[0].shape
    index = faiss.IndexFlatIP(dim)
    index.add(_in_float32(gallery))
    proposed = min(size, k + SPARE_CANDIDATES)
    # Rounding both vectors to float32 costs two units of 2^-24, a sum of D products D more, in whatever order (Higham,
    # "Accuracy and Stability of Numerical Algorithms", Eq. 3.5); four are to spare, also for lengths not quite 1.
    units = (dim + 6) * 2.0**-24
    tolerance = units / (1 - units)
    best, indices = _empty_result(query, k)
    for rows in _row_slices(len(best), block):
        queries = _take(query, rows)
        with _matrix_products():
            approximate, candidates = map(torch.from_numpy, index.search(_in_float32(queries), proposed))
        candidates = candidates.sort(dim=1).values  # so that positions among the candidates keep the order of indices
        scores = _score_candidates(queries, gallery, candidates)
        if itself is not None:
            scores.masked_fill_(candidates == itself[rows, None], -torch.inf)
        best[rows], positions = stable_topk(scores, k)
        indices[rows] = candidates.gather(1, positions)
        if proposed < size:
            reachable = best[rows, -1] <= approximate[:, -1].double() + tolerance
            unsettled = reachable.nonzero().flatten() + rows.start
            if len(unsettled):
                owners = None if itself is None else itself[unsettled]
                best[unsettled], indices[unsettled] = _search_with_torch(
                    _take(query, unsettled), gallery, k, owners, block
                )
    return best, indices


@contextmanager
def _matrix_products() -> Iterator[None]:
    """Let faiss search by a matrix product wherever that is faster.

    Release 1.15 takes one only from 128,000 numbers of queries on, which suits many threads; with few it is four to
    seven times as slow below (1,000 queries of D = 128). What it proposes is scored anew, so no result depends on it.
    """
    import faiss

    usual = faiss.cvar.distance_compute_blas_threshold
    # Releases before count queries, 20 of them, and are left as they are.
    faiss.cvar.distance_compute_blas_threshold = min(usual, FEWEST_PER_THREAD * faiss.omp_get_max_threads())
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = usual


def _score_candidates(query: Parts, gallery: Parts, candidates: Tensor) -> Tensor:
    scores = torch.empty(candidates.shape, dtype=torch.float64)
    for rows in _row_slices(len(scores), max(1, GATHERED // (candidates.shape[1] * gallery[0].shape[1]))):
        scores[rows] = exact_cosine_of_pairs(_take(query, rows), _take(gallery, candidates[rows]))
    return scores


def _empty_result(query: Parts, k: int) -> tuple[Tensor, Tensor]:
    best = query[0].new_empty(len(query[0]), k)
    return best, torch.empty_like(best, dtype=torch.int64)


def _row_slices(count: int, block: int) -> list[slice]:
    return [slice(start, min(start + block, count)) for start in range(0, count, block)]


def _in_float32(parts: Parts) -> NDArray[np.float32]:
    return sum(parts[1:], start=parts[0]).float().numpy()


def _take(parts: Parts, rows: Tensor | slice) -> Parts:
    if isinstance(rows, slice):
        return tuple(part[rows] for part in parts)
    # By index_select, which is four times as fast as indexing with a tensor.
    return tuple(part.index_select(0, rows.flatten()).view(*rows.shape, -1) for part in parts)
