"""DIML, structural matching for interpretable deep metric learning (ICCV 2021): locations compared pair by pair."""

from __future__ import annotations

from lookalike.methods.method import Method

METHOD = Method(
    learner="lookalike.learners.diml:DIMLLearner",
    scorings=("structural_matching", "cosine", "shared_neighbours"),
    options=("lookalike.methods.diml.located:LocatedEmbedder",),
    losses="lookalike.methods.diml.loss:TERMS",
    loss_options=("lookalike.methods.diml.matching:Matching",),
    keeps_locations=True,
    is_structured=True,
)
