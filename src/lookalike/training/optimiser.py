"""Optimiser with a learning rate for each part of a model, and its schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import optim

from lookalike.training.learner import Learner

PARTS = ("trunk", "head", "projector", "proxies", "boundaries")
OF_THE_MODEL = PARTS[:3]
OPTIMISERS: dict[str, Callable[..., optim.Optimizer]] = {"adam": optim.Adam, "adamw": optim.AdamW}


def build_optimiser(settings: Mapping[str, Any], learner: Learner, *, fused: bool = False) -> optim.Optimizer:
    """Optimiser over all trainable parameters, one group per part, named by it.

    Args:
        settings: ``algorithm``, ``lr`` per part, ``weight_decay`` of the model and ``loss_weight_decay``.
        learner: says which parameter belongs to which part.
        fused: whether a step is one kernel, which rounds otherwise and can be held up from the device.

    Raises:
        ValueError: if a part has no learning rate.
    """
    parts = dict(sorted(learner.parts().items(), key=lambda item: PARTS.index(item[0])))
    for part in parts:
        if part not in settings["lr"]:
            raise ValueError(f"optimiser.lr has no rate for {part!r}; it has {', '.join(settings['lr'])}")
    groups = [
        {
            "params": parameters,
            "name": part,
            "lr": settings["lr"][part],
            "weight_decay": settings["weight_decay" if part in OF_THE_MODEL else "loss_weight_decay"],
        }
        for part, parameters in parts.items()
    ]
    return OPTIMISERS[settings["algorithm"]](groups, fused=fused or None)


def set_rates(optimiser: optim.Optimizer, settings: Mapping[str, Any], schedule: Mapping[str, Any], epoch: int) -> None:
    """Set every group's learning rate for an epoch, counted from 0.

    The rates fall by ``factor`` every ``step_epochs``, or of a list after each of these epochs. During the first
    ``warm_up_epochs`` the ``resting`` parts stay as they are; these epochs count for the schedule only where
    ``warm_up_counts``. A function of the epoch alone, so that a resumed training needs no schedule state.
    """
    warm_up = schedule["warm_up_epochs"]
    uncounted = 0 if schedule["warm_up_counts"] else warm_up
    steps = steps_after(max(epoch - uncounted, 0), schedule["step_epochs"])
    for group in optimiser.param_groups:
        resting = epoch < warm_up and group["name"] in schedule["resting"]
        group["lr"] = 0.0 if resting else settings["lr"][group["name"]] * schedule["factor"] ** steps


def steps_after(epochs: int, step_epochs: int | Sequence[int] | None) -> int:
    """How often rates have fallen after so many epochs: every ``step_epochs``, after each of them, or never."""
    if step_epochs is None:
        return 0
    if isinstance(step_epochs, int):
        return epochs // step_epochs
    return sum(epochs >= step for step in step_epochs)
