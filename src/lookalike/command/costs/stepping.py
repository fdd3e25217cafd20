"""A learner whose steps are measured, and the clock to do so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from lookalike.training.learner import Learner
from lookalike.training.loop import accelerate, seed_everything
from lookalike.training.methods import LEARNERS
from lookalike.training.steps import Steps, steps_of


def measured_learner(train: Mapping[str, Any], *, classes: int, device: torch.device) -> tuple[Learner, Steps]:
    """A learner as a training has it past any warm-up, and what takes its steps.

    Weights are random, since they change no cost.

    Args:
        train: a recipe's ``train`` section, with a loss.
        classes: that it learns from.
        device: to measure on.
    """
    seed_everything(0)
    settings = {**train, "backbone": {**train["backbone"], "weights": None}}
    learner = LEARNERS[settings["method"]["name"]](settings, classes=classes).to(device).train()
    learner.model.to(memory_format=torch.channels_last)
    accelerate(learner.model, settings["acceleration"])
    learner.set_epoch(settings["budget"]["epochs"])
    return learner, steps_of(learner, settings["optimiser"], device)


def now(device: torch.device) -> float:
    """Seconds on a clock, once the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
