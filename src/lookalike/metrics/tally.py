"""Metrics of every query, from blocks of scores as they come.

The metrics of a query's own label are computed from the ranks of its positives, which are few: they are counted out
(``lookalike.metrics.order``). On a coarser level of a hierarchy a good part of the gallery is positive, so the row is
sorted, once for all levels: that takes ``O(G log G)`` a query, and each level ``O(G)`` more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lookalike.checks import require_known
from lookalike.metrics.definitions import average_precisions, mean_over_queries, metrics_of_queries
from lookalike.metrics.names import AVERAGE_PRECISIONS, OF_QUERIES
from lookalike.metrics.order import refuse_nan, row_blocks, stable_ranks
from lookalike.metrics.positives import check_pair, find_positives, sightings

Levels = Mapping[str, tuple[Tensor, Tensor]]


class Tally:
    """What is known of each query so far.

    Args:
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        self_match: query i is gallery item i, and left out of its ranking by its index.
        count_query_in_r: R of RP and MAP@R counts the query too.
        query_cameras: ``(Q,)`` int64, or ``None`` where nothing is junk.
        gallery_cameras: ``(G,)`` int64, or ``None`` as well.
        levels: by name the coarser labels ``(Q,)`` and ``(G,)`` int64.
        average_precision: one of `AVERAGE_PRECISIONS`, for mAP.

    Raises:
        ValueError: if labels, cameras or levels do not belong together, or for another kind of average precision.
    """

    def __init__(
        self,
        query_labels: Tensor,
        gallery_labels: Tensor,
        *,
        self_match: bool,
        count_query_in_r: bool,
        query_cameras: Tensor | None,
        gallery_cameras: Tensor | None,
        levels: Levels | None,
        average_precision: str = "hits",
    ) -> None:
        require_known("average_precision", average_precision, AVERAGE_PRECISIONS)
        self._same_label = find_positives(query_labels, gallery_labels, self_match=self_match)
        self._sightings = sightings(query_labels, gallery_labels, query_cameras, gallery_cameras, self_match=self_match)
        self._counts = self._same_label.counts
        if self._sightings is not None:
            self._counts = self._counts - find_positives(*self._sightings, self_match=self_match).counts
        self._self_match = self_match
        self._count_query_in_r = count_query_in_r
        self._average_precision = average_precision
        self._levels = levels or {}
        for name, pair in self._levels.items():
            check_pair(f"labels of level {name!r}", *pair, (len(query_labels), len(gallery_labels)), self_match)
        # Small results kept in a list instead would lie between the freed temporaries and let the process grow.
        self._per_query = torch.empty(len(query_labels), 1 + len(OF_QUERIES), dtype=torch.float64)
        self._per_level = torch.empty(len(self._levels), len(query_labels), dtype=torch.float64)

    def add(self, scores: Tensor, start: int) -> None:
        """Enter the scores ``(b, G)`` of ``b`` queries from ``start`` on.

        Raises:
            ValueError: if a score is NaN.
        """
        for part in row_blocks(scores.detach()):
            refuse_nan(part, first_row=start)
            queries = torch.arange(start, start + len(part), device=part.device)
            start += len(part)
            if self._levels:
                self._add_levels(part, queries)
            kept = self._counts[queries] > 0
            if bool(kept.any()):
                self._add_labels(part[kept], queries[kept])

    @property
    def of_queries(self) -> Tensor:
        """Metrics of the queries that have a positive, as `metrics_of_queries` gives them."""
        return self._per_query[self._counts.cpu() > 0]

    def means(self, ks: Sequence[int]) -> dict[str, float]:
        """Means over the queries that have a positive.

        Returns:
            As ``mean_over_queries``; with cameras ``rank1``, the same number as ``R@1`` under its name in tables of
            re-identification; and ``mAP_<name>`` for each level.

        Raises:
            ValueError: if no query has a positive, at all or on some level.
        """
        metrics = mean_over_queries(self.of_queries, ks)
        if self._sightings is not None:
            metrics["rank1"] = metrics["P@1"]
        for name, values in zip(self._levels, self._per_level, strict=True):
            measured = values[~values.isnan()].tolist()
            if not measured:
                raise ValueError(f"no query has a positive in the gallery on level {name!r}")
            metrics[f"mAP_{name}"] = math.fsum(measured) / len(measured)
        return metrics

    def _add_labels(self, scores: Tensor, queries: Tensor) -> None:
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        items = self._same_label.of(queries)  # (B, P)
        ranks = stable_ranks(scores, items, excluded=queries if self._self_match else None).double()
        repeated = torch.arange(items.shape[1], device=items.device) >= self._same_label.counts[queries, None]
        ranks.masked_fill_(repeated, torch.inf)
        if self._sightings is not None:
            query, gallery = self._sightings
            ranks = _without(ranks, gallery[items] == query[queries, None])
        counts = self._counts[queries]
        self._per_query[queries.cpu()] = metrics_of_queries(
            ranks, counts, count_query_in_r=self._count_query_in_r, average_precision=self._average_precision
        )

    def _add_levels(self, scores: Tensor, queries: Tensor) -> None:
        order = scores.argsort(dim=1, descending=True, stable=True)
        ranked = torch.ones_like(order, dtype=torch.bool)
        if self._self_match:
            ranked &= order != queries[:, None]
        if self._sightings is not None:
            query, gallery = self._sightings
            ranked &= gallery[order] != query[queries, None]
        for values, (query, gallery) in zip(self._per_level, self._levels.values(), strict=True):
            relevant = gallery[order] == query[queries, None]
            values[queries.cpu()] = average_precisions(relevant, ranked, average_precision=self._average_precision)


def _without(ranks: Tensor, junk: Tensor) -> Tensor:
    """The ranks ``(B, P)`` that remain, in ascending order, when junk, a bool of the same shape, takes none."""
    ranks, order = ranks.sort(dim=1)
    junk = junk.gather(1, order)
    return (ranks - junk.cumsum(dim=1)).masked_fill(junk, torch.inf)
