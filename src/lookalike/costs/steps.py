"""How many optimisation steps a training takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from lookalike.parameters import canonical
from lookalike.samplers import build_sampler
from lookalike.training.learner import named

COARSE = 12  # coarse classes that a hierarchical sampler is shown, as many as Stanford Online Products has


def training_steps(train: Mapping[str, Any], pictures: int, classes: int) -> int:
    """Steps of a training that no patience ends early, 0 for one without a loss.

    Without a number of batches in the recipe the recipe's own sampler tells the length of an epoch, as if all classes
    were of the same size.

    Args:
        train: the recipe's ``train`` section.
        pictures: of the training classes.
        classes: among them.
    """
    if train["loss"] is None:
        return 0
    share, budget = train["noise"]["classes"], train["budget"]
    batches = budget["batches_per_epoch"] or _pass_length(
        canonical(train["sampler"]), train["batch_size"], round(share * pictures), round(share * classes)
    )
    return int(budget["epochs"]) * batches


@cache
def _pass_length(sampler: str, batch_size: int, pictures: int, classes: int) -> int:
    name, options = named(json.loads(sampler))
    labels = np.arange(pictures) % classes
    return len(build_sampler(name, options, labels=labels, coarse_labels=labels % COARSE, batch_size=batch_size))
