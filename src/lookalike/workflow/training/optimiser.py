"""Optimiser with a learning rate for each part of a model, and its schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import optim

from lookalike.workflow.settings.recipes import LearningRates, Optimiser, Schedule
from lookalike.workflow.training.learner import Learner

PARTS = ("trunk", "head", "projector", "proxies", "boundaries")
OF_THE_MODEL = PARTS[:3]
OPTIMISERS: dict[str, Callable[..., optim.Optimizer]] = {"adam": optim.Adam, "adamw": optim.AdamW}


def build_optimiser(settings: Optimiser, learner: Learner, *, fused: bool = False) -> optim.Optimizer:
    """Optimiser over all trainable parameters, one group per part, named by it.

    Args:
        settings: of the recipe.
        learner: says which parameter belongs to which part.
        fused: whether a step is one kernel, which rounds otherwise and can be held up from the device.

    Raises:
        ValueError: if a part has no learning rate.
    """
    rates = _rates(settings.lr)
    parts = dict(sorted(learner.parts().items(), key=lambda item: PARTS.index(item[0])))
    for part in parts:
        if part not in rates:
            raise ValueError(f"optimiser.lr has no rate for {part!r}; it has {', '.join(rates)}")
    groups = [
        {
            "params": parameters,
            "name": part,
            "lr": rates[part],
            "weight_decay": settings.weight_decay if part in OF_THE_MODEL else settings.loss_weight_decay,
        }
        for part, parameters in parts.items()
    ]
    return OPTIMISERS[settings.algorithm](groups, fused=fused or None)


def set_rates(optimiser: optim.Optimizer, rates: LearningRates, schedule: Schedule, epoch: int, done: float) -> None:
    """Set every group's learning rate for a batch.

    During the first ``warm_up_epochs`` the ``resting`` parts stay as they are, and no backward pass goes through what
    lies below them. A function of the batch alone, so that a resumed training needs no schedule state.

    Args:
        optimiser: its groups are named by part.
        rates: full rate of each part.
        schedule: how they fall.
        epoch: the batch's, counted from 0.
        done: share of all batches of the training that lie before this one.
    """
    full, share = _rates(rates), decay(schedule, epoch, done)
    for group in optimiser.param_groups:
        resting = epoch < schedule.warm_up_epochs and group["name"] in schedule.resting
        group["lr"] = 0.0 if resting else full[group["name"]] * share
        for parameter in group["params"]:
            parameter.requires_grad_(not resting)


def decay(schedule: Schedule, epoch: int, done: float) -> float:
    """Share of the full rates at a batch, as `set_rates` is told of it.

    Half a cosine over the whole training, warm-up included; or ``factor`` for each of the ``step_epochs`` that have
    passed, where the warm-up counts only with ``warm_up_counts``. Source of the cosine: Loshchilov and Hutter 2017
    (SGDR), without restarts.
    """
    if schedule.decay == "cosine":
        return (1 + math.cos(math.pi * done)) / 2
    uncounted = 0 if schedule.warm_up_counts else schedule.warm_up_epochs
    return schedule.factor ** steps_after(max(epoch - uncounted, 0), schedule.step_epochs)


def _rates(rates: LearningRates) -> dict[str, float]:
    """Those that are stated, by part."""
    return {part: rate for part, rate in rates if rate is not None}


def steps_after(epochs: int, step_epochs: int | Sequence[int] | None) -> int:
    """Number of falls of the rates after so many epochs: every ``step_epochs``, after each of them, or never."""
    if step_epochs is None:
        return 0
    if isinstance(step_epochs, int):
        return epochs // step_epochs
    return sum(epochs >= step for step in step_epochs)
