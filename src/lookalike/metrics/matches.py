"""What a search finds first, for people to look at: which items, and their scores where the scoring has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from lookalike.metrics.blocks import Representation, Score, score_blocks
from lookalike.metrics.order import refuse_nan, stable_topk, working_set
from lookalike.metrics.positives import sightings
from lookalike.metrics.search import Search


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
