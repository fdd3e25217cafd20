"""DIML, structural matching for interpretable deep metric learning (ICCV 2021): locations compared pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.methods.method import Method


def _vectors(options: Mapping[str, Any]) -> int:
    """The locations of a grid and the embedding."""
    return int(options["side"]) ** 2 + 1 if "side" in options else 1


METHOD = Method(
    learner="lookalike.workflow.training.methods.learners:DIMLLearner",
    scorings=("structural_matching", "cosine", "shared_neighbours"),
    options=("lookalike.methods.diml.model:LocatedEmbedder",),
    losses="lookalike.methods.diml.loss:TERMS",
    loss_options=("lookalike.methods.diml.matching:Matching",),
    keeps_locations=True,
    is_structured=True,
    vectors=_vectors,
)
