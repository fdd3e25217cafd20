"""Retrieval metrics of similarities, of embeddings and of rankings.

The metrics are defined in ``lookalike.metrics.definitions`` as functions of the ranks of a query's positives. The
ranks are exact and those of the stable order: greater score first, lower index first on ties. Queries without a
positive are left out; ``lookalike.metrics.definitions.count_positives`` says which.

With cameras, as in re-identification, gallery items of the query's label *and* camera are junk: they take no rank and
count neither for nor against the query. On a coarser level of a hierarchy the ranking is the same, and all items of the
query's coarser label are positives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lookalike.metrics.definitions import (
    Levels,
    Tally,
    check_cutoffs,
    find_positives,
    mean_over_queries,
    metrics_of_queries,
)
from lookalike.metrics.similarity import Bounded, Representation, Score, bounded_blocks, score_blocks


def retrieval_metrics(
    similarity: Tensor,
    query_labels: Tensor,
    gallery_labels: Tensor,
    *,
    ks: Sequence[int] = (1, 2, 4, 8),
    self_match: bool,
    count_query_in_r: bool = False,
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
    levels: Levels | None = None,
    average_precision: str = "hits",
) -> dict[str, float]:
    """Retrieval metrics of a matrix of similarities.

    Args:
        similarity: ``(Q, G)`` float, larger means closer; infinite scores are allowed.
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        ks: cut-offs of Recall@k.
        self_match: query i is gallery item i, and left out of its ranking by its index, whatever its score.
        count_query_in_r: R of RP and MAP@R counts the query too; the other metrics stay as they are.
        query_cameras: ``(Q,)`` int64, which camera saw the query; without, nothing is junk.
        gallery_cameras: ``(G,)`` int64, given if ``query_cameras`` is.
        levels: by name the coarser labels ``(Q,)`` and ``(G,)`` int64 of queries and gallery.
        average_precision: what mAP averages, ``hits``, the precision at each positive, or ``trapezoids`` below the line
            of precision over recall; see `lookalike.metrics.definitions`.

    Returns:
        Fractions in [0, 1] under ``R@k`` for each k, ``P@1``, ``RP``, ``MAP@R`` and ``mAP``, means over the queries
        that have a positive; with cameras also ``rank1``, which is R@1; for each level ``mAP_<name>``.

    Raises:
        ValueError: if shapes do not belong together, a k is outside 1 to the number of ranked items (junk included),
            labels, cameras or levels differ although ``self_match`` says they are the same, a score is NaN, or no query
            has a positive.
    """
    tally = Tally(
        query_labels,
        gallery_labels,
        self_match=self_match,
        count_query_in_r=count_query_in_r,
        query_cameras=query_cameras,
        gallery_cameras=gallery_cameras,
        levels=levels,
        average_precision=average_precision,
    )
    shape = (len(query_labels), len(gallery_labels))
    if similarity.shape != shape or not similarity.is_floating_point():
        raise ValueError(f"similarity must be {shape} float, not {tuple(similarity.shape)} {similarity.dtype}")
    check_cutoffs(ks, shape[1] - self_match)
    tally.add(similarity, 0)
    return tally.means(ks)


def retrieval_metrics_from_embeddings(
    query: Representation,
    query_labels: Tensor,
    gallery: Representation,
    gallery_labels: Tensor,
    *,
    ks: Sequence[int],
    self_match: bool,
    count_query_in_r: bool = False,
    score: Score[Representation] = "cosine",
    block: int = 1024,
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
    levels: Levels | None = None,
    average_precision: str = "hits",
) -> dict[str, float]:
    """Retrieval metrics of embeddings, with never more than a block of scores in memory.

    mAP needs every score, and the ranks of the positives give all other metrics too: one pass over the blocks does
    everything, and no nearest-neighbour search takes part. The cost is a product in float32 and a count; with levels
    the product is one in float64, and each row is sorted, ``O(G log G)`` a query, whatever their number.

    Cosine similarities are exact (``lookalike.metrics.similarity``) wherever a bound of float32 leaves a rank open:
    duplicates tie, and the result has the same bits for every ``block``. They are float64; from a device without it,
    pass the embeddings on the CPU.

    Args:
        query: ``(Q, D)`` float, of any length; with a callable ``score`` anything that can be sliced by rows.
        query_labels: ``(Q,)`` int64.
        gallery: ``(G, D)`` of the same dtype and device.
        gallery_labels: ``(G,)`` int64.
        ks: cut-offs of Recall@k.
        self_match: query i is gallery item i, and left out of its ranking by its index.
        count_query_in_r: R of RP and MAP@R counts the query too; the other metrics stay as they are.
        score: ``"cosine"``, or a function of a block of queries and the gallery that returns ``(b, G)``, larger means
            closer.
        block: queries scored at once.
        query_cameras: ``(Q,)`` int64, which camera saw the query; without, nothing is junk.
        gallery_cameras: ``(G,)`` int64, given if ``query_cameras`` is.
        levels: by name the coarser labels ``(Q,)`` and ``(G,)`` int64 of queries and gallery.
        average_precision: what mAP averages, ``hits``, the precision at each positive, or ``trapezoids`` below the line
            of precision over recall; see `lookalike.metrics.definitions`.

    Returns:
        As ``retrieval_metrics``.

    Raises:
        ValueError: as ``retrieval_metrics``; also if there are not as many labels as items, ``block < 1``, ``score``
            is unknown or returns another shape, or an embedding is not finite.
    """
    tally = tally_of_embeddings(
        query,
        query_labels,
        gallery,
        gallery_labels,
        ks=ks,
        self_match=self_match,
        count_query_in_r=count_query_in_r,
        score=score,
        block=block,
        query_cameras=query_cameras,
        gallery_cameras=gallery_cameras,
        levels=levels,
        average_precision=average_precision,
    )
    return tally.means(ks)


def tally_of_embeddings(
    query: Representation,
    query_labels: Tensor,
    gallery: Representation,
    gallery_labels: Tensor,
    *,
    ks: Sequence[int],
    self_match: bool,
    count_query_in_r: bool = False,
    score: Score[Representation] = "cosine",
    block: int = 1024,
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
    levels: Levels | None = None,
    average_precision: str = "hits",
) -> Tally:
    """Tally of the queries after all have been scored; arguments as of `retrieval_metrics_from_embeddings`."""
    tally = Tally(
        query_labels,
        gallery_labels,
        self_match=self_match,
        count_query_in_r=count_query_in_r,
        query_cameras=query_cameras,
        gallery_cameras=gallery_cameras,
        levels=levels,
        average_precision=average_precision,
    )
    if (len(query), len(gallery)) != (len(query_labels), len(gallery_labels)):
        raise ValueError(
            f"{len(query)} queries and {len(gallery)} gallery items need as many labels, "
            f"not {len(query_labels)} and {len(gallery_labels)}"
        )
    if block < 1:
        raise ValueError(f"block={block} must be at least 1")
    check_cutoffs(ks, len(gallery) - self_match)
    with torch.no_grad():
        # Levels sort the scores themselves; the ranks of positives need few of them exactly.
        scores_of: Callable[[int, int], Tensor | Bounded]
        if score == "cosine" and not levels and isinstance(query, Tensor) and isinstance(gallery, Tensor):
            scores_of = bounded_blocks(query, gallery)
        else:
            scores_of = score_blocks(query, gallery, score)
        for start in range(0, len(query), block):
            stop = min(start + block, len(query))
            # The scores get no name here: it would keep one block alive while the next is computed.
            tally.add(scores_of(start, stop), start)
    return tally


def retrieval_metrics_from_ranking(
    ranking: Tensor,
    query_labels: Tensor,
    gallery_labels: Tensor,
    *,
    class_sizes: Tensor,
    ks: Sequence[int],
    count_query_in_r: bool = False,
) -> dict[str, float]:
    """Retrieval metrics of the first K ranks, for galleries too large for a full matrix.

    Args:
        ranking: ``(Q, K)`` int64 gallery indices, nearest first, the query itself and any junk left out.
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        class_sizes: ``(Q,)`` int64, each query's number of positives in the gallery, itself and junk not counted, as
            ``lookalike.metrics.definitions.count_positives`` gives them.
        ks: cut-offs of Recall@k, at most K.
        count_query_in_r: R of RP and MAP@R counts the query too; the other metrics stay as they are.

    Returns:
        As ``retrieval_metrics``, without ``mAP``, which needs all ranks.

    Raises:
        ValueError: if shapes do not belong together, an index is beyond the gallery or repeated, class sizes do not
            fit the labels or the ranking, a k is outside [1, K], no query has a positive, or RP and MAP@R need ranks
            beyond K (R is greater than K, and positives remain to be found there).
    """
    per_query, _ = queries_of_ranking(
        ranking, query_labels, gallery_labels, class_sizes=class_sizes, count_query_in_r=count_query_in_r
    )
    return means_of_ranking(per_query, ranking.shape[1], ks)


def means_of_ranking(per_query: Tensor, depth: int, ks: Sequence[int]) -> dict[str, float]:
    """Means over the queries of a ranking of ``depth`` items, without ``mAP``.

    Raises:
        ValueError: if a k is outside [1, depth].
    """
    check_cutoffs(ks, depth)
    metrics = mean_over_queries(per_query, ks)
    del metrics["mAP"]
    return metrics


def queries_of_ranking(
    ranking: Tensor, query_labels: Tensor, gallery_labels: Tensor, *, class_sizes: Tensor, count_query_in_r: bool
) -> tuple[Tensor, Tensor]:
    """Metrics of single queries from the first K ranks; arguments as of `retrieval_metrics_from_ranking`.

    Returns:
        Metrics of the queries that have a positive, as `metrics_of_queries` gives them, their average precision that of
        K ranks; and ``(Q,)`` bool, which queries these are.
    """
    _check_class_sizes(class_sizes, query_labels, gallery_labels)
    _check_ranking(ranking, len(query_labels), len(gallery_labels))
    depth = ranking.shape[1]
    hits = gallery_labels[ranking] == query_labels[:, None]  # (Q, K)
    hit_counts = hits.sum(dim=1)
    if bool((hit_counts > class_sizes).any()):
        row = _first(hit_counts > class_sizes)
        raise ValueError(
            f"the ranking of query {row} holds {int(hit_counts[row])} items of its label, but its class_sizes is "
            f"{int(class_sizes[row])}; the query itself must be left out of both"
        )
    relevant = class_sizes + count_query_in_r
    undecided = (relevant > depth) & (hit_counts < class_sizes)
    if bool(undecided.any()):
        raise ValueError(
            f"RP and MAP@R of query {_first(undecided)} need more than the K = {depth} ranks given; "
            f"rank the first {int(relevant[undecided].max())} items, the largest R"
        )
    ranks = torch.where(hits, torch.arange(1, depth + 1, device=hits.device), torch.inf)
    kept = class_sizes > 0
    per_query = metrics_of_queries(ranks[kept], class_sizes[kept], count_query_in_r=count_query_in_r)
    return per_query, kept


def _check_ranking(ranking: Tensor, queries: int, size: int) -> None:
    if ranking.ndim != 2 or len(ranking) != queries or ranking.dtype != torch.int64 or ranking.numel() == 0:
        raise ValueError(
            f"ranking must be ({queries}, K) int64 with K >= 1, not {tuple(ranking.shape)} {ranking.dtype}"
        )
    if not 0 <= int(ranking.min()) <= int(ranking.max()) < size:
        raise ValueError(
            f"ranking holds indices from {int(ranking.min())} to {int(ranking.max())}, allowed is 0 to {size - 1}"
        )
    ordered = ranking.sort(dim=1).values
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(dim=1)
    if bool(repeated.any()):
        raise ValueError(f"the ranking of query {_first(repeated)} holds an index more than once")


def _check_class_sizes(class_sizes: Tensor, query_labels: Tensor, gallery_labels: Tensor) -> None:
    largest = find_positives(query_labels, gallery_labels, self_match=False).counts
    if class_sizes.shape != largest.shape or class_sizes.is_floating_point():
        raise ValueError(
            f"class_sizes must be ({len(query_labels)},) int64, not {tuple(class_sizes.shape)} {class_sizes.dtype}"
        )
    wrong = (class_sizes < 0) | (class_sizes > largest)
    if bool(wrong.any()):
        row = _first(wrong)
        raise ValueError(
            f"class_sizes of query {row} is {int(class_sizes[row])}, "
            f"but the gallery holds {int(largest[row])} items of its label"
        )


def _first(flags: Tensor) -> int:
    return int(flags.nonzero()[0])
