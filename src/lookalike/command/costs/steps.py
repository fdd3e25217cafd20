"""How many optimisation steps a training takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from lookalike.parameters import canonical
from lookalike.plan.sizes import Composition
from lookalike.samplers import build_sampler
from lookalike.training.learner import named


def training_steps(train: Mapping[str, Any], pictures: Composition) -> int:
    """Steps of a training that no patience ends early, 0 for one without a loss.

    Without a number of batches in the recipe the recipe's own sampler tells the length of an epoch.

    Args:
        train: the recipe's ``train`` section.
        pictures: of the training classes.
    """
    if train["loss"] is None:
        return 0
    budget = train["budget"]
    batches = budget["batches_per_epoch"] or _pass_length(
        canonical(train["sampler"]), train["batch_size"], pictures, train["noise"]["classes"]
    )
    return int(budget["epochs"]) * batches


@cache
def _pass_length(sampler: str, batch_size: int, pictures: Composition, share: float) -> int:
    name, options = named(json.loads(sampler))
    shown = pictures.first_classes(share)
    return len(build_sampler(name, options, labels=shown.labels, coarse_labels=shown.coarse, batch_size=batch_size))
