"""One search of queries in a gallery, whose result is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor, nn

from lookalike.metrics.blocks import Representation, Score
from lookalike.metrics.definitions import mean_over_queries
from lookalike.metrics.first import first_rank_recall, share_of
from lookalike.metrics.positives import count_positives
from lookalike.metrics.retrieval import means_of_ranking, queries_of_ranking, tally_of_embeddings
from lookalike.metrics.tally import Levels, Tally

Tensors = Mapping[str, Tensor]  # representations of N images: tensors with N rows, by name
# Called with model, queries, gallery and search; what else one takes is set in a recipe.
Scoring = Callable[..., dict[str, float]]


@dataclass(frozen=True)
class Search:
    """Who searches whom, and what is counted.

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
        """What all scores say of each query."""
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
        """What the first ranks say of each query, as `lookalike.metrics.retrieval.queries_of_ranking`.

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
