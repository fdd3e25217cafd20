"""Exact retrieval by AVSL's overall distance without evaluating the graph for every pair.

The metrics of retrieval are functions of the ranks of a query's positives, and these of how many items are closer. So
the distances of the positives are evaluated over the whole graph; every other distance is bounded by one matrix product
(`lookalike.methods.avsl.bounds`), and only items whose bounds hold the distance of a positive are evaluated too. Items
that are not are closer or farther than the positive whatever their exact distance is. Images of similar statistics are
bounded together, as the bounds are narrower then; in a set against itself one product bounds a pair both ways.

Source: the distance is that of Attributable Visual Similarity Learning (CVPR 2022), whose paper names its pairwise cost
as the method's limit; the bounds are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.methods.avsl.bounds import extremes, weight_intervals
from lookalike.methods.avsl.exact_search import CertifiedSearch, Side, similar_order, widest_direction
from lookalike.methods.avsl.graph import Step, block_sensitivities, graph_images, graph_steps
from lookalike.metrics.definitions import (
    Positives,
    check_cutoffs,
    find_positives,
    mean_over_queries,
    metrics_of_queries,
)
from lookalike.metrics.names import AVERAGE_PRECISIONS, OF_QUERIES

QUERIES, GALLERY = 1024, 4096  # bounded at once
MUTUAL = 2048  # of a set against itself
HELD = 2**24  # positives of all queries whose ranks are counted at once, 16 bytes each and as many for the counts
GROUP = 256  # images whose weights are bounded together


def certified_metrics(
    query_embeddings: Sequence[Tensor],
    query_statistics: Sequence[Tensor],
    gallery_embeddings: Sequence[Tensor],
    gallery_statistics: Sequence[Tensor],
    query_labels: Tensor,
    gallery_labels: Tensor,
    *,
    alpha: Sequence[Tensor | None],
    beta: Sequence[Tensor | None],
    edges: Sequence[Tensor | None],
    scale: float = 10.0,
    ks: Sequence[int] = (1, 2, 4, 8),
    self_match: bool,
    count_query_in_r: bool = False,
    average_precision: str = "hits",
) -> tuple[dict[str, float], dict[str, float]]:
    """Metrics of retrieval by the overall distance, those of evaluating every pair in float64.

    Args:
        query_embeddings: per level ``(Q, r)``, not yet normalised.
        query_statistics: per level ``(Q, r)``.
        gallery_embeddings: per level ``(G, r)``.
        gallery_statistics: per level ``(G, r)``.
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        alpha: per level ``(r,)``; the first may be ``None``.
        beta: per level ``(r,)``; the first may be ``None``.
        edges: per level ``(r, r)`` normalised edges to the level below, the first ``None``.
        scale: factor of the sigmoid's argument.
        ks: cut-offs of Recall@k.
        self_match: query i is gallery item i, and does not find itself.
        count_query_in_r: R of RP and MAP@R counts the query too.
        average_precision: one of `lookalike.metrics.names.AVERAGE_PRECISIONS`, for mAP.

    Returns:
        Metrics as `lookalike.metrics.retrieval.retrieval_metrics` gives them for minus the distance, lower index first
        on ties; and a report: ``exact_share``, the share of pairs whose distance was evaluated over the whole graph,
        and ``undecided_share``, that of pairs which the matrix product left open.

    Raises:
        ValueError: as `lookalike.methods.avsl.similarity.overall_distance` and `retrieval_metrics`.
    """
    check_cutoffs(ks, len(gallery_labels) - self_match)
    query = Side("query", query_embeddings, query_statistics)
    per_query, report = certified_queries(
        query,
        Side("gallery", gallery_embeddings, gallery_statistics),
        exact_steps(query, alpha, beta, edges),
        scale,
        query_labels,
        gallery_labels,
        self_match=self_match,
        count_query_in_r=count_query_in_r,
        average_precision=average_precision,
    )
    return mean_over_queries(per_query, ks), report


def certified_queries(
    query: Side,
    gallery: Side,
    steps: Sequence[Step],
    scale: float,
    query_labels: Tensor,
    gallery_labels: Tensor,
    *,
    self_match: bool,
    count_query_in_r: bool,
    average_precision: str,
) -> tuple[Tensor, dict[str, float]]:
    """Metrics of each query that has a positive, in the order of the queries, and a report of the search.

    Args:
        query: Q images.
        gallery: G images.
        steps: of `exact_steps`.
        scale: factor of the sigmoid's argument.
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        self_match: query i is gallery item i, and does not find itself.
        count_query_in_r: R of RP and MAP@R counts the query too.
        average_precision: one of `lookalike.metrics.names.AVERAGE_PRECISIONS`, for mAP.

    Returns:
        Metrics as `lookalike.metrics.definitions.metrics_of_queries` gives them, and the report.
    """
    shapes = [(side.levels, side.nodes) for side in (query, gallery)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"gallery has (levels, nodes) {shapes[1]}, it must have {shapes[0]} as the query")
    if (query.count, gallery.count) != (len(query_labels), len(gallery_labels)):
        raise ValueError(
            f"{query.count} queries and {gallery.count} gallery items need as many labels, "
            f"not {len(query_labels)} and {len(gallery_labels)}"
        )
    require_known("average_precision", average_precision, AVERAGE_PRECISIONS)
    positives = find_positives(query_labels, gallery_labels, self_match=self_match)
    with torch.no_grad():
        groups, ranks, search = _searched(query, gallery, steps, scale, positives, self_match=self_match)
        per_query = torch.empty(query.count, 1 + len(OF_QUERIES), dtype=torch.float64)
        for queries, found in zip(groups, ranks, strict=True):
            counts = positives.counts[queries]
            per_query[queries.cpu()] = metrics_of_queries(
                found, counts, count_query_in_r=count_query_in_r, average_precision=average_precision
            )
    kept = per_query[positives.counts.cpu() > 0]  # as elsewhere, queries without a positive are left out
    pairs = max(1, len(kept) * (gallery.count - self_match))
    return kept, {"exact_share": search.exact / pairs, "undecided_share": search.undecided / pairs}


def _searched(
    query: Side, gallery: Side, steps: Sequence[Step], scale: float, positives: Positives, *, self_match: bool
) -> tuple[Sequence[Tensor], Iterator[Tensor], CertifiedSearch]:
    """Rows of the queries that have a positive, in groups; the ranks of each group as they come; the search itself."""
    direction = widest_direction(gallery, steps)
    order = similar_order(query, direction, steps)
    asks = positives.counts[order] > 0
    rows, most = order[asks], int(positives.counts.max()) if len(order) else 0
    if self_match and len(rows) * most <= HELD and query.equals(gallery):
        groups = _split(rows, MUTUAL)
        blocks = [*groups, *_split(order[~asks], MUTUAL)]
        search = CertifiedSearch(query, gallery, steps, scale, positives, blocks)
        return groups, search.mutual_ranks(len(groups)), search
    groups, columns = _split(rows, QUERIES), _split(similar_order(gallery, direction, steps), GALLERY)
    search = CertifiedSearch(query, gallery, steps, scale, positives, columns)
    return groups, search.ranks(groups, itself=self_match), search


def _split(index: Tensor, size: int) -> Sequence[Tensor]:
    return torch.split(index, size) if len(index) else ()


def exact_steps(
    side: Side, alpha: Sequence[Tensor | None], beta: Sequence[Tensor | None], edges: Sequence[Tensor | None]
) -> list[Step]:
    """Steps of the graph down the levels in float64, without a gradient.

    Args:
        side: images whose levels and nodes the constants must fit.
        alpha: per level ``(r,)``; the first may be ``None``.
        beta: per level ``(r,)``; the first may be ``None``.
        edges: per level ``(r, r)`` normalised edges to the level below, the first ``None``.
    """
    constants = [[None if each is None else each.detach().double() for each in part] for part in (alpha, beta, edges)]
    return graph_steps(side.some(slice(1)), *constants)


def fixed_weights(
    statistics: Sequence[Tensor],
    *,
    alpha: Sequence[Tensor | None],
    beta: Sequence[Tensor | None],
    edges: Sequence[Tensor | None],
    scale: float = 10.0,
) -> list[Tensor]:
    """Sensitivities of two images that both have the mean statistics of a set: weights that no longer hang on the pair.

    With ``w`` these weights and unit vectors ``u`` per level, ``sum w (u_q - u_g)^2`` is the squared distance of the
    vectors ``sqrt(w) u``, for which any index can search.

    Args:
        statistics: per level ``(N, r)``.
        alpha: per level ``(r,)``; the first may be ``None``.
        beta: per level ``(r,)``; the first may be ``None``.
        edges: per level ``(r, r)`` normalised edges to the level below, the first ``None``.
        scale: factor of the sigmoid's argument.

    Returns:
        Per level ``(r,)``.

    Raises:
        ValueError: if levels or nodes do not belong together, or there is no image.
    """
    if not statistics or not all(each.ndim == 2 and len(each) for each in statistics):
        shapes = [tuple(each.shape) for each in statistics]
        raise ValueError(f"statistics have shapes {shapes}, they must be (N, r) with N >= 1, at least one level")
    means = [each.mean(dim=0, keepdim=True) for each in statistics]
    mean = graph_images("mean", means, means, False)  # of its vectors nothing is read
    return [each[0, 0] for each in block_sensitivities(mean, mean, graph_steps(mean, alpha, beta, edges), scale)]


def fixed_error(
    query_statistics: Sequence[Tensor],
    gallery_statistics: Sequence[Tensor],
    weights: Sequence[Tensor],
    *,
    alpha: Sequence[Tensor | None],
    beta: Sequence[Tensor | None],
    edges: Sequence[Tensor | None],
    scale: float = 10.0,
) -> float:
    """Largest relative error that fixed weights can make for any pair, whatever the images' unit vectors.

    A distance is a sum of nodes that are not negative, so it is off by no more than the worst of its weights. Images of
    similar statistics are bounded together.

    Args:
        query_statistics: per level ``(Q, r)``.
        gallery_statistics: per level ``(G, r)``.
        weights: of `fixed_weights`.
        alpha: per level ``(r,)``; the first may be ``None``.
        beta: per level ``(r,)``; the first may be ``None``.
        edges: per level ``(r, r)`` normalised edges to the level below, the first ``None``.
        scale: factor of the sigmoid's argument.

    Returns:
        The bound, relative to the exact distance; infinite where a weight's interval holds 0 and more.

    Raises:
        ValueError: if levels or nodes do not belong together.
    """
    sides = Side("query", query_statistics, query_statistics), Side("gallery", gallery_statistics, gallery_statistics)
    steps = exact_steps(sides[0], alpha, beta, edges)
    direction = widest_direction(sides[1], steps)
    groups = [
        [extremes(side.some(rows)) for rows in torch.split(similar_order(side, direction, steps), GROUP)]
        for side in sides
    ]
    fixed, worst = torch.cat([each.double() for each in weights]), 0.0
    for query in groups[0]:
        for gallery in groups[1]:
            middle, half, _ = weight_intervals(query, gallery, steps, scale)
            off = torch.maximum(middle + half - fixed, fixed - (middle - half))
            worst = max(worst, float(torch.where(off > 0, off / (middle - half).clamp(min=0), 0.0).max()))
    return worst
