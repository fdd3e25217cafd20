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
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lookalike.metrics.names import OF_QUERIES


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
    """What a positive adds to the average precision, from its precision, number and rank."""
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
