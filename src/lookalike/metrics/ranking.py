"""Stable rankings, and nearest-neighbour search with one result whatever the back end.

``topk``, an unstable sort and faiss leave the order of equal scores open, so that duplicates and clipped scores move
from one machine to the next. The functions here do not: they depend on the scores and the indices alone.

All back ends rank by the similarities of ``lookalike.metrics.similarity``, which are exact, in this order. The torch
back end computes all of them, block by block. The faiss back end lets ``IndexFlatIP`` propose candidates in float32,
computes theirs anew, and accepts the result only where no item left out can reach the k-th: float32 sums are off by
less than a known bound. The other queries, those with more near duplicates than there are spare candidates, are
searched by the torch back end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor

from lookalike.metrics.similarity import (
    Bounded,
    NotFiniteError,
    exact_cosine,
    exact_cosine_of_pairs,
    fixed_point_pair,
    float32_error,
    in_float32,
)

WORKING_SET = 2**19
"""Scores handled at once: a few megabytes, so that temporaries stay in the cache (measured: 2.5 times faster)."""

COMPARED = 2**20  # scores compared with listed ones at once
BYTES_PER_SCORE = 256  # of temporaries, with room to spare
Backend = Literal["faiss", "torch"]
Parts = tuple[Tensor, ...]
SPARE_CANDIDATES = 64
GATHERED = 2**22
"""Numbers of candidates' vectors gathered at once."""
FEWEST_PER_THREAD = 800
"""Queries times D from which a thread of faiss is faster with a matrix product (measured in its pull request 5109)."""


def working_set(device: torch.device) -> int:
    """Scores handled at once on a device: on a CUDA one as many as a quarter of its free memory holds, at most 2^28."""
    if device.type != "cuda":
        return WORKING_SET
    free, _ = torch.cuda.mem_get_info(device)
    return min(max(WORKING_SET, free // 4 // BYTES_PER_SCORE), 2**28)


def refuse_nan(scores: Tensor, *, first_row: int = 0) -> None:
    """Raise ``ValueError`` if a score is NaN: it has no place in an order, and a descending sort would put it first.

    The message names the row; ``first_row`` is the number of the first one where ``scores`` is part of a matrix.
    """
    if bool(scores.isnan().any()):
        row, column = scores.isnan().nonzero()[0].tolist()
        raise NotFiniteError(
            f"the score in row {first_row + row}, column {column} is NaN; scores must be numbers or infinite"
        )


def row_blocks(scores: Tensor) -> list[Tensor]:
    """Views on consecutive rows of ``scores (Q, G)``, each of about `working_set` scores and at least one row."""
    rows = max(1, working_set(scores.device) // max(1, scores.shape[1]))
    return [scores[start : start + rows] for start in range(0, len(scores), rows)]


def stable_topk(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The first ``k`` items of every row in the stable order.

    Where the k-th score is shared, the candidates are widened to all that reach it before the lower indices are taken.

    Args:
        scores: ``(Q, G)`` float, larger means closer.
        k: number of items, ``1 <= k <= G``.

    Returns:
        Scores ``(Q, k)``, descending, and indices ``(Q, k)`` int64.

    Raises:
        ValueError: if ``k`` is outside ``[1, G]`` or a score is NaN.
    """
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"k={k} is outside [1, {scores.shape[1]}], the number of items")
    refuse_nan(scores)
    best = scores.topk(k, dim=1)
    reaching = int((scores >= best.values[:, -1:]).sum(dim=1).max())  # more than k where the k-th score is shared
    if reaching > k:
        best = scores.topk(reaching, dim=1)
    indices = best.indices.sort(dim=1).values  # the stable sort below keeps ascending indices within ties
    ordered = scores.gather(1, indices).sort(dim=1, descending=True, stable=True)
    return ordered.values[:, :k], indices.gather(1, ordered.indices)[:, :k]


def stable_ranks(scores: Tensor | Bounded, items: Tensor, *, excluded: Tensor | None = None) -> Tensor:
    """Ranks of the listed items in the stable order of their row, found by counting instead of sorting the row.

    Only scores that reach the least listed one are looked at. Where bounds hold a listed score, exact scores decide.

    Args:
        scores: ``(Q, G)`` float, larger means closer, no NaN; or bounds of such.
        items: ``(Q, P)`` int64 columns of ``scores``; repetitions are allowed.
        excluded: ``(Q,)`` int64, in each row one column that takes no part and is not listed; by default none.

    Returns:
        ``(Q, P)`` int64, counted from 1: one more than the number of items with a greater score, or with the same
        score and a lower index.
    """
    bounded = scores if isinstance(scores, Bounded) else Bounded.rounded(scores)
    row = torch.arange(len(items), device=items.device)[:, None]
    listed = bounded.exact(row.expand_as(items).flatten(), items.flatten()).view(items.shape)
    listed, order = listed.sort(dim=1)  # (Q, P), ascending
    items = items.gather(1, order)
    # What float32 makes of a bound is off by another unit.
    error = bounded.error and bounded.error + 2.0**-23
    low, high = (listed - error).float(), (listed + error).float()
    reaching = bounded.near >= low[:, :1]
    if excluded is not None:
        reaching.scatter_(1, excluded[:, None], False)
    before, open_rows, columns = count_above(bounded.near, reaching, low, high)
    values = bounded.exact(open_rows, columns)
    some = max(1, COMPARED // items.shape[1])
    for start in range(0, len(values), some):
        part = slice(start, start + some)
        value, column, own = values[part, None], columns[part, None], open_rows[part]
        first = (value > listed[own]) | ((value == listed[own]) & (column < items[own]))
        before.index_add_(0, own, first.long())
    return torch.empty_like(items).scatter_(1, order, before + 1)


def count_above(scores: Tensor, reaching: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number of scores above each of some intervals and in none, and places of those in one.

    Args:
        scores: ``(Q, G)`` float32.
        reaching: ``(Q, G)`` bool, which take part; none of them lies below the first interval of its row.
        low: ``(Q, P)`` float32, where intervals begin, ascending.
        high: ``(Q, P)``, where they end, ascending.

    Returns:
        ``(Q, P)`` int64; and rows and columns ``(n,)`` of the scores in an interval, ends included.
    """
    index = reaching.flatten().nonzero().flatten()
    row = index // scores.shape[1]
    begins, ends = _ordered(low), _ordered(high) + 1
    begins[:, 1:] = torch.maximum(begins[:, 1:], ends[:, :-1])  # those that overlap follow each other
    rows = torch.arange(len(low), device=low.device)[:, None]
    borders = (torch.stack([begins, ends], dim=2).flatten(1) + rows * 2**32).flatten()
    place = torch.searchsorted(borders, _ordered(scores.flatten()[index]) + row * 2**32, right=True)
    inside = place.bitwise_and(1).bool()
    counts = torch.bincount(place, minlength=len(borders) + 1)[2::2].view(low.shape)
    return counts.flip(1).cumsum(dim=1).flip(1), row[inside], index[inside] % scores.shape[1]


def _ordered(numbers: Tensor) -> Tensor:
    """Integers of 32 bits, as int64, in the order of float32 numbers."""
    bits = (numbers + 0.0).view(torch.int32)  # no zero has a sign
    return torch.where(bits < 0, bits ^ (2**31 - 1), bits).long()


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
    index.add(in_float32(gallery).numpy())
    proposed = min(size, k + SPARE_CANDIDATES)
    tolerance = float32_error(dim)
    best, indices = _empty_result(query, k)
    for rows in _row_slices(len(best), block):
        queries = _take(query, rows)
        with _matrix_products():
            approximate, candidates = map(torch.from_numpy, index.search(in_float32(queries).numpy(), proposed))
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


def _take(parts: Parts, rows: Tensor | slice) -> Parts:
    if isinstance(rows, slice):
        return tuple(part[rows] for part in parts)
    # By index_select, which is four times as fast as indexing with a tensor.
    return tuple(part.index_select(0, rows.flatten()).view(*rows.shape, -1) for part in parts)
