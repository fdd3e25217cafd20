"""What an optimisation step of each kind of training costs, measured on random pictures and weights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # importing them takes seconds, which a plan that measures nothing need not spend
    import torch

    from lookalike.training.learner import Learner
    from lookalike.training.steps import Steps

PER_CLASS = 2
PICTURES = 8  # of a measured step
# Losses that compare all pairs of a batch by what costs more than a product of vectors.
OF_ALL_PAIRS = frozenset({("diml", "multi_similarity")})


@dataclass(frozen=True)
class StepCost:
    """Seconds of an optimisation step: so many a picture and, for losses `OF_ALL_PAIRS`, so many a pair."""

    picture: float
    pair: float = 0.0

    def of(self, batch: int) -> float:
        """Seconds of a step of so many pictures."""
        return batch * self.picture + batch**2 * self.pair


@dataclass(frozen=True, order=True)
class Kind:
    """What the time of a step depends on, beside the batch. Losses of embeddings are small against the network."""

    backbone: str
    method: str
    crop_px: tuple[int, int]  # height and width
    mixed_precision: bool

    def __str__(self) -> str:
        precision = ", mixed precision" if self.mixed_precision else ""
        height, width = self.crop_px
        size = f"{height}" if height == width else f"{height} x {width}"
        return f"{self.backbone}, {self.method}, {size} px{precision}"


def crop_size(view: Mapping[str, Any]) -> tuple[int, int]:
    """Height and width of the pictures that a view gives."""
    height, width = np.broadcast_to(view["crop_px"], 2).tolist()
    return height, width


def kind_of(train: Mapping[str, Any]) -> Kind:
    """The kind of a training, from the recipe's ``train`` section."""
    parts = [train["method"]["name"], train["method"].get("kind")]
    if _compares_all_pairs(train):
        parts.append(train["loss"]["name"])
    method = " ".join(filter(None, parts))
    return Kind(train["backbone"]["name"], method, crop_size(train["image"]), train["mixed_precision"])


def step_cost(train: Mapping[str, Any], device: torch.device) -> StepCost:
    """What an optimisation step costs, the second of two: forward, backward and update.

    Weights are random, since they change no cost, and pictures too: reading and decoding them is not measured. On the
    CPU one thread computes, as a job of the workflow does there. Losses `OF_ALL_PAIRS` are measured on twice as many
    pictures as well, which tells what a pair costs.

    Args:
        train: the recipe's ``train`` section, with a loss.
        device: to measure on.
    """
    import torch

    pictures, threads = PICTURES, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        once = _measured(train, device, pictures)
        if not _compares_all_pairs(train):
            return StepCost(once / pictures)
        twice = _measured(train, device, 2 * pictures)
    finally:
        torch.set_num_threads(threads)
    pair = min(max(twice - 2 * once, 0.0) / (2 * pictures**2), once / pictures**2)
    return StepCost(once / pictures - pair * pictures, pair)


def _compares_all_pairs(train: Mapping[str, Any]) -> bool:
    return train["loss"] is not None and (train["method"]["name"], train["loss"]["name"]) in OF_ALL_PAIRS


def measured_learner(train: Mapping[str, Any], *, classes: int, device: torch.device) -> tuple[Learner, Steps]:
    """A learner as a training has it past any warm-up, and what takes its steps.

    Weights are random, since they change no cost.

    Args:
        train: a recipe's ``train`` section, with a loss.
        classes: that it learns from.
        device: to measure on.
    """
    import torch

    from lookalike.training.loop import accelerate, seed_everything
    from lookalike.training.methods import LEARNERS
    from lookalike.training.steps import steps_of

    seed_everything(0)
    settings = {**train, "backbone": {**train["backbone"], "weights": None}}
    learner = LEARNERS[settings["method"]["name"]](settings, classes=classes).to(device).train()
    learner.model.to(memory_format=torch.channels_last)
    accelerate(learner.model, settings["acceleration"])
    learner.set_epoch(settings["budget"]["epochs"])
    return learner, steps_of(learner, settings["optimiser"], device)


def now(device: torch.device) -> float:
    """Seconds on a clock, once the device has done what it was given."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _measured(train: Mapping[str, Any], device: torch.device, pictures: int) -> float:
    """Seconds of a step of so many pictures."""
    import torch

    learner, steps = measured_learner(train, classes=pictures // PER_CLASS, device=device)
    images = torch.randn(pictures, 3, *crop_size(train["image"]), device=device)
    labels = torch.arange(pictures, device=device) // PER_CLASS
    taken = 0.0
    for _ in range(2):  # the first one also allocates
        started = now(device)
        steps.optimiser.zero_grad()
        steps.take(learner(images, labels))
        taken = now(device) - started
    return taken
