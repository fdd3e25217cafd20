"""Searches of queries in a gallery: metrics of all ranks, R@1 alone, first matches, and means over classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor, nn

from lookalike.metrics.definitions import Levels, Tally, count_positives, mean_over_queries, sightings
from lookalike.metrics.names import OF_QUERIES
from lookalike.metrics.ranking import refuse_nan, stable_topk, working_set
from lookalike.metrics.retrieval import means_of_ranking, queries_of_ranking, tally_of_embeddings
from lookalike.metrics.similarity import Representation, Score, score_blocks

Tensors = Mapping[str, Tensor]  # representations of N images: tensors with N rows, by name
# Called with model, queries, gallery and search; what else one takes is set in a recipe.
Scoring = Callable[..., dict[str, float]]
COLUMNS = ("label", "queries", "R@1", *OF_QUERIES)


def first_rank_recall(
    query: Representation,
    query_labels: Tensor,
    gallery: Representation,
    gallery_labels: Tensor,
    *,
    self_match: bool,
    score: Score[Representation] = "cosine",
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
) -> float:
    """``R@1`` of `lookalike.metrics.retrieval.retrieval_metrics_from_embeddings`, from the first item of each query.

    Args:
        query: ``(Q, D)`` float, or whatever ``score`` takes.
        query_labels: ``(Q,)`` int64.
        gallery: G items of the same.
        gallery_labels: ``(G,)`` int64.
        self_match: query i is gallery item i, and does not find itself.
        score: ``"cosine"``, or a function of a block of queries and the gallery that returns a new ``(b, G)``.
        query_cameras: ``(Q,)`` int64, or ``None`` where nothing is junk.
        gallery_cameras: ``(G,)`` int64, or ``None`` as well.

    Raises:
        ValueError: if labels or cameras do not belong together, a score is NaN, or no query has a positive.
    """
    cameras = {"query_cameras": query_cameras, "gallery_cameras": gallery_cameras}
    positives = count_positives(query_labels, gallery_labels, self_match=self_match, **cameras)
    seen = sightings(query_labels, gallery_labels, query_cameras, gallery_cameras, self_match=self_match)
    first = torch.empty_like(query_labels)
    with torch.no_grad():
        scores_of = score_blocks(query, gallery, score)
        rows = max(1, working_set(query_labels.device) // max(1, len(gallery_labels)))
        for start in range(0, len(query_labels), rows):
            stop = min(start + rows, len(query_labels))
            scores = scores_of(start, stop)
            refuse_nan(scores, first_row=start)
            if self_match:
                itself = torch.arange(start, stop, device=scores.device)
                scores.scatter_(1, itself[:, None], -torch.inf)
            if seen is not None:
                scores.masked_fill_(seen[0][start:stop, None] == seen[1], -torch.inf)
            first[start:stop] = scores.argmax(dim=1)  # of equal scores the first, as everywhere
    kept = positives > 0
    return share_of((gallery_labels[first] == query_labels)[kept])


def share_of(hits: Tensor) -> float:
    """Share of hits among queries ``(Q,)`` bool.

    Raises:
        ValueError: if there is no query.
    """
    if not len(hits):
        raise ValueError("no query has a positive in the gallery, so there is nothing to average")
    return int(hits.sum()) / len(hits)


@dataclass(frozen=True)
class Search:
    """Queries and gallery of a search, and the metrics that it counts.

    Attributes:
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        ks: cut-offs of Recall@k.
        self_match: query i is gallery item i and does not find itself.
        count_query_in_r: R of RP and MAP@R counts the query too.
        query_cameras: ``(Q,)`` int64, or ``None`` where nothing is junk.
        gallery_cameras: ``(G,)`` int64, or ``None`` as well.
        levels: by name the coarser labels ``(Q,)`` and ``(G,)`` int64, for metrics of all scores.
        average_precision: one of `lookalike.metrics.names.AVERAGE_PRECISIONS`, for mAP.
        keeps_scores: whether the scores themselves are asked for, not only what they say of each query.
    """

    keeps_scores: ClassVar[bool] = False

    query_labels: Tensor
    gallery_labels: Tensor
    ks: Sequence[int]
    self_match: bool
    count_query_in_r: bool = False
    query_cameras: Tensor | None = None
    gallery_cameras: Tensor | None = None
    levels: Levels = field(default_factory=dict)
    average_precision: str = "hits"

    @property
    def depth(self) -> int:
        """Ranks that every metric but mAP needs: the largest k or R.

        Raises:
            ValueError: with cameras: junk takes no rank, so that no one depth is enough.
        """
        self._refuse_cameras()
        largest = int(self.class_sizes.max()) + self.count_query_in_r
        return min(max([largest, *self.ks]), len(self.gallery_labels) - self.self_match)

    @property
    def class_sizes(self) -> Tensor:
        """Positives of each query in the gallery, ``(Q,)``."""
        return count_positives(
            self.query_labels,
            self.gallery_labels,
            self_match=self.self_match,
            query_cameras=self.query_cameras,
            gallery_cameras=self.gallery_cameras,
        )

    def by_score(
        self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine"
    ) -> dict[str, float]:
        """Metrics of all scores: ``mAP`` too, and that of the levels."""
        return self.tally(query, gallery, score).means(self.ks)

    def tally(self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine") -> Tally:
        """Tally of the queries by all scores."""
        return tally_of_embeddings(
            query,
            self.query_labels,
            gallery,
            self.gallery_labels,
            ks=self.ks,
            self_match=self.self_match,
            count_query_in_r=self.count_query_in_r,
            score=score,
            query_cameras=self.query_cameras,
            gallery_cameras=self.gallery_cameras,
            levels=self.levels,
            average_precision=self.average_precision,
        )

    def by_ranking(self, ranking: Tensor) -> dict[str, float]:
        """Metrics of the first ``depth`` ranks ``(Q, depth)``, without ``mAP`` and the levels.

        Raises:
            ValueError: with cameras, as ``depth``.
        """
        return means_of_ranking(self.queries(ranking)[0], ranking.shape[1], self.ks)

    def queries(self, ranking: Tensor) -> tuple[Tensor, Tensor]:
        """Metrics of each query from the first ranks, as `lookalike.metrics.retrieval.queries_of_ranking`.

        Raises:
            ValueError: with cameras, as ``depth``.
        """
        self._refuse_cameras()
        return queries_of_ranking(
            ranking,
            self.query_labels,
            self.gallery_labels,
            class_sizes=self.class_sizes,
            count_query_in_r=self.count_query_in_r,
        )

    def by_queries(self, per_query: Tensor) -> dict[str, float]:
        """Metrics from those of each query that has a positive, without the levels.

        Args:
            per_query: in the order of the queries, as `lookalike.metrics.definitions.metrics_of_queries` gives them.
        """
        return mean_over_queries(per_query, self.ks)

    def _refuse_cameras(self) -> None:
        if self.query_cameras is not None or self.gallery_cameras is not None:
            raise ValueError(
                "the first ranks alone cannot be scored with cameras, because pictures of the query's identity and "
                "camera take no rank; use a scoring that gives all scores, such as 'cosine'"
            )


@dataclass(frozen=True)
class FirstRank(Search):
    """A search for R@1 alone, as between the epochs of a training: the first item of each query decides.

    The result is that of `Search`.
    """

    @property
    def depth(self) -> int:
        """One rank.

        Raises:
            ValueError: with cameras, as of any search.
        """
        self._refuse_cameras()
        return 1

    def by_score(
        self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine"
    ) -> dict[str, float]:
        """``R@1``."""
        recall = first_rank_recall(
            query,
            self.query_labels,
            gallery,
            self.gallery_labels,
            score=score,
            self_match=self.self_match,
            query_cameras=self.query_cameras,
            gallery_cameras=self.gallery_cameras,
        )
        return {"R@1": recall}

    def by_ranking(self, ranking: Tensor) -> dict[str, float]:
        """``R@1``."""
        self._refuse_cameras()
        first = ranking[:, 0]
        kept = self.class_sizes > 0
        return {"R@1": share_of(self.gallery_labels[first][kept] == self.query_labels[kept])}

    def by_queries(self, per_query: Tensor) -> dict[str, float]:
        """``R@1``."""
        return {"R@1": share_of(per_query[:, 0] <= 1)}


def cosine(model: nn.Module | None, query: Tensors, gallery: Tensors, search: Search) -> dict[str, float]:
    """Metrics by cosine similarity of the embeddings; the model is not read."""
    return search.by_score(query["embedding"], gallery["embedding"])


@dataclass(frozen=True)
class FirstMatches(Search):
    """A search that keeps the first items of each query instead of scoring them; no item is left out but junk.

    Attributes:
        count: items wanted of each query, at most as many as the gallery has.
        found: places ``(Q, count)`` in the gallery after a scoring was called with this search, and their scores
            ``(Q, count)``, NaN where the scoring ranks without them.
    """

    keeps_scores: ClassVar[bool] = True

    count: int = 1
    found: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """As many ranks as are wanted.

        Raises:
            ValueError: with cameras, as of any search.
        """
        self._refuse_cameras()
        return self.count

    def by_score(
        self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine"
    ) -> dict[str, float]:
        """Keep the items with the greatest scores; of equal ones the first in the gallery."""
        scores_of, found = score_blocks(query, gallery, score), []
        junk = sightings(
            self.query_labels, self.gallery_labels, self.query_cameras, self.gallery_cameras, self_match=self.self_match
        )
        rows = max(1, working_set(self.query_labels.device) // max(1, len(self.gallery_labels)))
        for start in range(0, len(self.query_labels), rows):
            stop = min(start + rows, len(self.query_labels))
            scores = scores_of(start, stop)
            refuse_nan(scores, first_row=start)
            if self.self_match:
                scores.scatter_(1, torch.arange(start, stop, device=scores.device)[:, None], -torch.inf)
            if junk is not None:
                scores.masked_fill_(junk[0][start:stop, None] == junk[1], -torch.inf)
            found.append(stable_topk(scores, self.count))
        self.found.append((torch.cat([places for _, places in found]), torch.cat([values for values, _ in found])))
        return {}

    def by_ranking(self, ranking: Tensor) -> dict[str, float]:
        """Keep the first ranks."""
        self._refuse_cameras()
        first = ranking[:, : self.count]
        self.found.append((first, torch.full(first.shape, torch.nan, dtype=torch.float64, device=first.device)))
        return {}


@dataclass(frozen=True)
class SearchOfClasses(Search):
    """A search that also keeps the metrics of each query.

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
