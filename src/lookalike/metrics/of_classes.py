"""What the queries of each class reach: the parts of a result that vary with which classes are tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
import torch
from torch import Tensor

from lookalike.metrics.blocks import Representation, Score
from lookalike.metrics.names import OF_QUERIES
from lookalike.metrics.retrieval import means_of_ranking
from lookalike.metrics.search import Search

COLUMNS = ("label", "queries", "R@1", *OF_QUERIES)


@dataclass(frozen=True)
class SearchOfClasses(Search):
    """A search that also keeps what each query reached.

    Attributes:
        kept: metrics of queries, as `lookalike.metrics.definitions.metrics_of_queries` gives them, and their labels.
    """

    kept: dict[str, Tensor] = field(default_factory=dict)

    def by_score(
        self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine"
    ) -> dict[str, float]:
        """As of any search."""
        tally = self.tally(query, gallery, score)
        self._keep(tally.of_queries, self.class_sizes > 0)
        return tally.means(self.ks)

    def by_ranking(self, ranking: Tensor) -> dict[str, float]:
        """As of any search."""
        per_query, searching = self.queries(ranking)
        metrics = means_of_ranking(per_query, ranking.shape[1], self.ks)
        per_query[:, -1] = torch.nan  # mAP takes all ranks
        self._keep(per_query, searching)
        return metrics

    def by_queries(self, per_query: Tensor) -> dict[str, float]:
        """As of any search."""
        self._keep(per_query, self.class_sizes > 0)
        return super().by_queries(per_query)

    def means(self) -> pd.DataFrame:
        """A row per class that has a query with a positive, by `COLUMNS`: its number of such queries and their means.

        R@1 and the others are fractions; ``mAP`` is NaN where only the first ranks were scored.
        """
        return means_of_classes(self.kept["per_query"], self.kept["labels"])

    def _keep(self, per_query: Tensor, searching: Tensor) -> None:
        self.kept["per_query"], self.kept["labels"] = per_query, self.query_labels[searching].cpu()


def means_of_classes(per_query: Tensor, labels: Tensor) -> pd.DataFrame:
    """Means over the queries of each class, in the order of the labels.

    Args:
        per_query: ``(Q, 1 + len(OF_QUERIES))``: rank of the first positive, and `OF_QUERIES`.
        labels: ``(Q,)`` int64.

    Returns:
        Columns `COLUMNS`.
    """
    values = pd.DataFrame(per_query.numpy(), columns=["R@1", *OF_QUERIES])
    values["R@1"] = (values["R@1"] <= 1).astype(float)
    by_class = values.groupby(labels.numpy())
    means = by_class.mean().rename_axis("label").reset_index()
    means.insert(1, "queries", by_class.size().to_numpy())
    return means[list(COLUMNS)]


def over_classes(means: pd.DataFrame, metrics: Sequence[str]) -> dict[str, float]:
    """Means over all queries, from those of classes."""
    return {name: float((means[name] * means["queries"]).sum() / means["queries"].sum()) for name in metrics}
