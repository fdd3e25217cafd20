"""Contents of a trace.

A trace holds the norms of the steps' gradients and the scores that a scoring gives to some pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.representation import Representation as Located
from lookalike.metrics.search import Search
from lookalike.metrics.similarity import Representation, Score, score_blocks
from lookalike.workflow.settings.model import Part
from lookalike.workflow.training.evaluation import SCORINGS

PAIRS = 16


@dataclass(frozen=True)
class Watched(Search):
    """A search that keeps all scores, or the ranking, that it is given."""

    keeps_scores: ClassVar[bool] = True

    kept: dict[str, Tensor] = field(default_factory=dict)

    def by_score(
        self, query: Representation, gallery: Representation, score: Score[Representation] = "cosine"
    ) -> dict[str, float]:
        """As of any search."""
        self.kept["scores"] = score_blocks(query, gallery, score)(0, len(query))
        return super().by_score(query, gallery, score)

    def by_ranking(self, ranking: Tensor) -> dict[str, float]:
        """As of any search."""
        self.kept["ranking"] = ranking
        return super().by_ranking(ranking)


@torch.no_grad()
def watched_scores(
    scoring: Part,
    model: nn.Module,
    query: Mapping[str, Tensor],
    gallery: Mapping[str, Tensor],
    search: Search,
) -> dict[str, list[float]]:
    """Scores of 16 pairs as a recipe scores them.

    Args:
        scoring: the recipe's ``evaluate.scoring``.
        model: what the scoring reads.
        query: Q representations, at least 16.
        gallery: G representations.
        search: who searches whom.

    Returns:
        ``scores`` of 16 pairs; of a scoring that ranks, also the ``ranking``: its first ranks for 16 queries.
    """
    watched = Watched(**vars(search))
    SCORINGS[scoring.name](model, query, gallery, watched, **scoring.options)
    rows = torch.arange(PAIRS)
    columns = (5 * rows + 1) % len(search.gallery_labels)
    if "scores" in watched.kept:
        return {"scores": watched.kept["scores"][rows, columns].tolist()}
    sides = [Located(side["regions"], side["embedding"]) for side in (query, gallery)]
    scores = StructuralMatcher(**scoring.options).similarity(*sides)
    return {
        "scores": scores[rows, columns].tolist(),
        "ranking": watched.kept["ranking"][:PAIRS].flatten().double().tolist(),
    }


@contextmanager
def gradient_norms() -> Iterator[dict[str, list[float]]]:
    """Inside, every step of any optimiser adds the norm of the gradient of each of its groups, under its name."""
    norms: dict[str, list[float]] = {}

    def note(optimiser: Optimizer, arguments: Any, options: Any) -> None:
        for group in optimiser.param_groups:
            gradients = [parameter.grad for parameter in group["params"] if parameter.grad is not None]
            norm = float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0
            norms.setdefault(group["name"], []).append(norm)

    hook = register_optimizer_step_pre_hook(note)
    try:
        yield norms
    finally:
        hook.remove()
