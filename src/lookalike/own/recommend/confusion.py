"""Which classes are taken for each other: by the first picture that each held-out picture finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import torch
from torch import Tensor

from lookalike.files import read_tensors, unpacked_names
from lookalike.learners.saved import load_model
from lookalike.learners.scorings import READ_THE_MODEL, SCORINGS
from lookalike.metrics.blocks import Representation, Score, score_blocks
from lookalike.metrics.order import working_set
from lookalike.metrics.search import Search
from lookalike.stages.evaluate import representation, search_of, searching_roles
from lookalike.training.learner import named

MOST = 5  # pairs that are told


@dataclass(frozen=True)
class Pair:
    """Two classes that are taken for each other.

    Attributes:
        classes: their names.
        wrong: queries of either whose first match is of the other.
        queries: of both.
        query: path of such a query, below the folder.
        match: path of what it found.
    """

    classes: tuple[str, str]
    wrong: int
    queries: int
    query: str
    match: str


@dataclass(frozen=True)
class FirstHits(Search):
    """A search that keeps the first item of each query, and measures nothing."""

    keeps_scores: ClassVar[bool] = True

    kept: dict[str, Tensor] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """One rank."""
        return 1

    def by_score(
        self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine"
    ) -> dict[str, float]:
        """Nothing; ``kept["first"]`` is ``(Q,)``."""
        first, scores_of = torch.empty_like(self.query_labels), score_blocks(query, gallery, score)
        rows = max(1, working_set(self.query_labels.device) // max(1, len(self.gallery_labels)))
        for start in range(0, len(first), rows):
            stop = min(start + rows, len(first))
            scores = scores_of(start, stop)
            if self.self_match:
                scores.scatter_(1, torch.arange(start, stop, device=scores.device)[:, None], -torch.inf)
            first[start:stop] = scores.argmax(dim=1)
        self.kept["first"] = first
        return {}

    def by_ranking(self, ranking: Tensor) -> dict[str, float]:
        """As by scores."""
        self.kept["first"] = ranking[:, 0]
        return {}


@torch.no_grad()
def confused(settings: Mapping[str, Any], model: Path, embeddings: Path, *, most: int = MOST) -> list[Pair]:
    """The pairs of classes that are most often taken for each other.

    Args:
        settings: the recipe's section ``evaluate``.
        model: file of the training.
        embeddings: of its pictures, as the stage ``embed`` wrote them.
        most: pairs.

    Returns:
        Pairs with most wrong first matches first; those with equally many by name.
    """
    tensors, about = read_tensors(embeddings)
    checkpoint = "best" if about["best_epoch"] == about["epochs"] else "last"
    query, gallery = searching_roles(tensors)
    whole = search_of(settings, tensors, query, gallery, [1], {})
    search = FirstHits(**{each.name: getattr(whole, each.name) for each in fields(Search)})
    name, options = named(settings["scoring"])
    network = load_model(model, checkpoint)[0] if name in READ_THE_MODEL else None
    sides = [representation(tensors, checkpoint, role) for role in (query, gallery)]
    SCORINGS[name](network, *sides, search, **options)
    paths = {role: unpacked_names(tensors[f"names/{role}"]) for role in {query, gallery}}
    return pairs_of(paths[query], [paths[gallery][place] for place in search.kept["first"].tolist()], most=most)


def pairs_of(queries: list[str], found: list[str], *, most: int = MOST) -> list[Pair]:
    """As `confused`, of the paths of queries and of what each has found; a picture's folder is its class."""
    wrong: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for query, match in zip(queries, found, strict=True):
        first, second = (PurePosixPath(path).parent.name for path in (query, match))
        sizes[first] += 1
        if first != second:
            wrong[min(first, second), max(first, second)].append((query, match))
    ordered = sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        Pair(classes, len(cases), sum(sizes[name] for name in classes), *cases[0]) for classes, cases in ordered[:most]
    ]
