"""How many optimisation steps a training takes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from lookalike.plan.sizes import Composition
from lookalike.settings.layers import canonical
from lookalike.sources.kept import kept


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
    shown = pictures.first_classes(share)

    def by_building() -> int:
        from lookalike.sampling.samplers import build_sampler  # seconds of imports, for what is not kept yet
        from lookalike.training.learner import named

        name, options = named(json.loads(sampler))
        return len(build_sampler(name, options, labels=shown.labels, coarse_labels=shown.coarse, batch_size=batch_size))

    digest = hashlib.sha256(shown.labels.tobytes() + shown.coarse.tobytes()).hexdigest()
    return kept(f"batches of {sampler}, {batch_size} of {digest}", by_building)
