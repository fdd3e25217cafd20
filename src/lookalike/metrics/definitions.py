"""Recall@k, Precision@1, R-Precision, MAP@R and mAP, each a function of the ranks of a query's positives.

For a query with positives at ranks ``r_1 < r_2 < ... < r_n``, the query itself left out of the ranking, the precision
at the j-th positive is ``j / r_j``, and

    R@k    is 1 if ``r_1 <= k``, else 0; P@1 is R@1
    RP     is the number of positives among the first R items, divided by R
    MAP@R  is the sum of the precisions at the positives with ``r_j <= R``, divided by R
    mAP    is the sum of all precisions, divided by n

with ``R = n``, or ``R = n + 1`` with ``count_query_in_r``. Metrics are means over the queries with n > 0, as fractions.
With ``average_precision="trapezoids"`` each positive adds to mAP the mean of its precision and of the one just before
it, ``(j - 1) / (r_j - 1)``, which before the first rank is 1. The other metrics stay as they are.

Source: Musgrave, Belongie, Lim, "A Metric Learning Reality Check", for RP and MAP@R with R = n. The released code of
Zhao et al., "Towards Interpretable Deep Metric Learning with Structural Matching", counts the query into R, and the
paper's tables follow the code: RP is then at most ``n / (n + 1)``, a half where a class has two images.

In re-identification the items of the query's label that its own camera saw are *junk*: neither positive nor negative,
and without a rank. Source: Zhong et al., "Re-ranking Person Re-identification with k-reciprocal Encoding", the protocol
CUHK03-NP, which is that of Market-1501.

The metrics of a query's own label are computed from the ranks of its positives, which are few: they are counted out
(`stable_ranks`). On a coarser level of a hierarchy a good part of the gallery is positive, so the row is
sorted, once for all levels: that takes ``O(G log G)`` a query, and each level ``O(G)`` more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.metrics.names import AVERAGE_PRECISIONS, OF_QUERIES
from lookalike.metrics.ranking import refuse_nan, row_blocks, stable_ranks
from lookalike.metrics.similarity import Bounded

Levels = Mapping[str, tuple[Tensor, Tensor]]


def metrics_of_queries(
    ranks: Tensor, counts: Tensor, *, count_query_in_r: bool, average_precision: str = "hits"
) -> Tensor:
    """Rank of the first positive, RP, MAP@R and average precision of every query.

    Args:
        ranks: ``(Q, P)`` ranks of the positives, counted from 1, in any order, filled up with infinity.
        counts: ``(Q,)`` number of positives n, at least 1.
        count_query_in_r: whether R is n + 1.
        average_precision: one of `AVERAGE_PRECISIONS`.

    Returns:
        ``(Q, 1 + len(OF_QUERIES))`` float64 on the CPU. Where positives are missing from ``ranks``, the average
        precision is that of the ranks given, and no metric of the query.
    """
    ranks, counts = ranks.double().cpu().sort(dim=1).values, counts.double().cpu()
    relevant = counts + count_query_in_r
    hits = torch.arange(1, ranks.shape[1] + 1)
    precision = hits / ranks  # 0 at infinity
    within = ranks <= relevant[:, None]
    # A running sum adds from left to right, so that the result does not depend on how far a row is filled up.
    sum_within = precision.masked_fill(~within, 0).cumsum(dim=1)[:, -1]
    sum_of_all = _averaged(precision, hits, ranks, average_precision).cumsum(dim=1)[:, -1]
    columns = [ranks[:, 0], within.sum(dim=1) / relevant, sum_within / relevant, sum_of_all / counts]
    return torch.stack(columns, dim=1)


def average_precisions(relevant: Tensor, ranked: Tensor, *, average_precision: str = "hits") -> Tensor:
    """Average precision of every query from its whole gallery, for positives too many to list.

    Args:
        relevant: ``(Q, G)`` bool, which items are positives, nearest first.
        ranked: ``(Q, G)`` bool, which items take a rank; positives that take none do not count.
        average_precision: one of `AVERAGE_PRECISIONS`.

    Returns:
        ``(Q,)`` float64 on the CPU, NaN for a query without a positive.
    """
    hits = relevant & ranked
    hit_counts, ranks = hits.cumsum(dim=1).double(), ranked.cumsum(dim=1)
    precision = _averaged(hit_counts / ranks, hit_counts, ranks, average_precision).masked_fill(~hits, 0)
    # A running sum adds from left to right, so that the result does not depend on how many queries there are.
    return (precision.cumsum(dim=1)[:, -1] / hit_counts[:, -1]).cpu()


def _averaged(precision: Tensor, hits: Tensor, ranks: Tensor, average_precision: str) -> Tensor:
    """Contribution of a positive to the average precision, from its precision, number and rank."""
    if average_precision == "hits":
        return precision
    before = ((hits - 1) / (ranks - 1)).masked_fill(ranks <= 1, 1)
    return (precision + before) / 2


def mean_over_queries(per_query: Tensor, ks: Sequence[int]) -> dict[str, float]:
    """``R@k`` for each k, ``P@1``, ``RP``, ``MAP@R`` and ``mAP``, from ``metrics_of_queries``.

    Raises:
        ValueError: if there is no query.
    """
    if not len(per_query):
        raise ValueError("no query has a positive in the gallery, so there is nothing to average")
    first, *others = per_query.T.tolist()
    metrics = {f"R@{k}": sum(rank <= k for rank in first) / len(first) for k in ks}
    metrics["P@1"] = sum(rank <= 1 for rank in first) / len(first)
    for name, values in zip(OF_QUERIES, others, strict=True):
        metrics[name] = math.fsum(values) / len(first)
    return metrics


def check_cutoffs(ks: Sequence[int], width: int) -> None:
    """Raise ``ValueError`` if a cut-off of Recall@k is outside ``[1, width]``, the number of ranked items."""
    for k in ks:
        if not 1 <= k <= width:
            raise ValueError(f"k={k} is outside [1, {width}], the number of ranked items (the query is not ranked)")


@dataclass(frozen=True)
class Positives:
    """The positives of every query, listed without a ``(Q, G)`` table.

    Attributes:
        by_label: ``(G,)`` gallery indices in ascending order of label, then of index.
        first: ``(Q,)`` position in ``by_label`` where the query's label begins.
        itself: ``(Q,)`` position of the query itself in ``by_label``, ``G`` where it is not in the gallery.
        counts: ``(Q,)`` number of positives.
    """

    by_label: Tensor
    first: Tensor
    itself: Tensor
    counts: Tensor

    def of(self, queries: Tensor) -> Tensor:
        """Gallery indices ``(B, P)`` of the positives of ``queries (B,)``, each of which must have one.

        P is their largest number of positives; shorter rows repeat their last positive.
        """
        counts = self.counts[queries, None]
        steps = torch.arange(int(counts.max()), device=counts.device).minimum(counts - 1)  # (B, P)
        positions = self.first[queries, None] + steps
        positions += positions >= self.itself[queries, None]
        return self.by_label[positions]


def find_positives(query_labels: Tensor, gallery_labels: Tensor, *, self_match: bool) -> Positives:
    """The positives of every query.

    Args:
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        self_match: query i is gallery item i, and no positive of itself.

    Raises:
        ValueError: if labels are not vectors of integers, or differ although ``self_match`` says they are the same.
    """
    for name, labels in (("query_labels", query_labels), ("gallery_labels", gallery_labels)):
        if labels.ndim != 1 or labels.is_floating_point():
            raise ValueError(f"{name} must be a vector of int64, not {tuple(labels.shape)} {labels.dtype}")
    if self_match and not torch.equal(query_labels, gallery_labels):
        raise ValueError(
            "self_match=True needs query i to be gallery item i, but query_labels and gallery_labels differ "
            f"({len(query_labels)} and {len(gallery_labels)} labels)"
        )
    sorted_labels, by_label = gallery_labels.sort(stable=True)
    first = torch.searchsorted(sorted_labels, query_labels)
    counts = torch.searchsorted(sorted_labels, query_labels, right=True) - first
    if self_match:
        return Positives(by_label, first, itself=by_label.argsort(), counts=counts - 1)
    return Positives(by_label, first, itself=torch.full_like(first, len(gallery_labels)), counts=counts)


def count_positives(
    query_labels: Tensor,
    gallery_labels: Tensor,
    *,
    self_match: bool,
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
) -> Tensor:
    """Number of positives ``(Q,)`` int64 of every query; where it is 0, retrieval metrics leave the query out.

    These are the ``class_sizes`` of ``retrieval_metrics_from_ranking``. With cameras junk does not count. Raises
    ``ValueError`` as ``find_positives`` and ``sightings``.
    """
    counts = find_positives(query_labels, gallery_labels, self_match=self_match).counts
    seen = sightings(query_labels, gallery_labels, query_cameras, gallery_cameras, self_match=self_match)
    return counts if seen is None else counts - find_positives(*seen, self_match=self_match).counts


def sightings(
    query_labels: Tensor,
    gallery_labels: Tensor,
    query_cameras: Tensor | None,
    gallery_cameras: Tensor | None,
    *,
    self_match: bool,
) -> tuple[Tensor, Tensor] | None:
    """A number for each pair of label and camera: gallery items with the query's number are its junk.

    Args:
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        query_cameras: ``(Q,)`` int64, or ``None`` where nothing is junk.
        gallery_cameras: ``(G,)`` int64, or ``None`` as well.
        self_match: query i is gallery item i.

    Returns:
        ``(Q,)`` and ``(G,)`` int64, or ``None`` without cameras.

    Raises:
        ValueError: if cameras are given on one side only, or as ``check_pair``.
    """
    if query_cameras is None and gallery_cameras is None:
        return None
    if query_cameras is None or gallery_cameras is None:
        absent = "query_cameras" if query_cameras is None else "gallery_cameras"
        raise ValueError(f"{absent} is missing: cameras must be given of queries and gallery, or of neither")
    check_pair("cameras", query_cameras, gallery_cameras, (len(query_labels), len(gallery_labels)), self_match)
    pairs = torch.stack([torch.cat([query_labels, gallery_labels]), torch.cat([query_cameras, gallery_cameras])], dim=1)
    numbers = torch.unique(pairs, dim=0, return_inverse=True)[1]
    return numbers[: len(query_labels)], numbers[len(query_labels) :]


def check_pair(name: str, query: Tensor, gallery: Tensor, sizes: tuple[int, int], self_match: bool) -> None:
    """Raise ``ValueError`` unless these are numbers of ``sizes = (Q, G)`` items, with ``self_match`` the same twice."""
    for side, numbers, size in zip(("queries", "gallery items"), (query, gallery), sizes, strict=True):
        if numbers.shape != (size,) or numbers.is_floating_point():
            raise ValueError(
                f"{name} of the {side} must be ({size},) int64, not {tuple(numbers.shape)} {numbers.dtype}"
            )
    if self_match and not torch.equal(query, gallery):
        raise ValueError(f"self_match=True needs query i to be gallery item i, but their {name} differ")


class Tally:
    """Metrics of single queries, gathered as their scores come in.

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

    def add(self, scores: Tensor | Bounded, start: int) -> None:
        """Enter the scores ``(b, G)`` of ``b`` queries from ``start`` on; levels need the scores themselves.

        Raises:
            ValueError: if a score is NaN.
        """
        first = 0
        for part in row_blocks(scores.near if isinstance(scores, Bounded) else scores.detach()):
            queries = torch.arange(start + first, start + first + len(part), device=part.device)
            if isinstance(scores, Bounded):
                known = scores.rows(first, part)
            else:
                refuse_nan(part, first_row=start + first)
                self._add_levels(part, queries)
                known = Bounded.rounded(part)
            kept = (self._counts[queries] > 0).nonzero().flatten()
            if len(kept):
                self._add_labels(known if len(kept) == len(part) else known.some(kept), queries[kept])
            first += len(part)

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

    def _add_labels(self, scores: Bounded, queries: Tensor) -> None:
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
        if not self._levels:
            return
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
