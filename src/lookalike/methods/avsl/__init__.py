"""Attributable Visual Similarity Learning (CVPR 2022): images compared as graphs of nodes over levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.methods.method import Method

LEVELS = 3  # the last stages of the backbone


def _vectors(options: Mapping[str, Any]) -> int:
    """The nodes of each level."""
    return LEVELS


def _check(recipe: Any) -> str | None:
    train = recipe.train
    k, dim = train.method.options.get("k"), train.embedding.dim
    if k is not None and k > dim:
        return f"train.method.k: {k} edges per node exceed the {dim} nodes (embedding.dim)"
    if not isinstance(train.test_image.crop_px, int):
        return "train.test_image.crop_px: method 'avsl' reads squares, one number"
    return None


METHOD = Method(
    learner="lookalike.workflow.training.methods.learners:AVSLLearner",
    scorings=("graph", "fixed_weights"),
    options=("lookalike.methods.avsl.model:AVSL",),
    losses="lookalike.methods.avsl.loss:TERMS",
    loss_options=("lookalike.methods.avsl.loss:AVSLLoss",),
    is_structured=True,
    vectors=_vectors,
    learns=("proxies",),  # at whose rate its graph learns, too
    scaled=("k",),
    check=_check,
)
