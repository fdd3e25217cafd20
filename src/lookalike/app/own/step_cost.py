"""Cost of an optimisation step of each kind of training, measured on random pictures and weights.

Of a card that is not at hand the data sheet tells what the network's work takes at least (`work_of`, `DataSheet`).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.recipes import Train, View

if TYPE_CHECKING:  # importing them takes seconds, which a plan that measures nothing need not spend
    import torch

    from lookalike.workflow.training.learner import Learner
    from lookalike.workflow.training.steps import Steps

PER_CLASS = 2
PICTURES = 8  # of a measured step
COUNTED = 4  # pictures whose work is counted
NO_WORK = frozenset(
    {"view", "t", "transpose", "expand", "detach", "permute", "alias", "unsqueeze", "squeeze", "select"}
)
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
    """Settings that decide the time of a step, beside the batch. Losses of embeddings are small against the network."""

    backbone: str
    method: str
    crop_px: tuple[int, int]  # height and width
    mixed_precision: bool
    acceleration: tuple[str, ...] = ()

    def __str__(self) -> str:
        precision = "".join(f", {each}" for each in ("mixed precision",) * self.mixed_precision + self.acceleration)
        height, width = self.crop_px
        size = f"{height}" if height == width else f"{height} x {width}"
        return f"{self.backbone}, {self.method}, {size} px{precision}"


def crop_size(view: View) -> tuple[int, int]:
    """Height and width of the pictures that a view gives."""
    height, width = np.broadcast_to(view.crop_px, 2).tolist()
    return height, width


def kind_of(train: Train) -> Kind:
    """The kind of a training, from the recipe's ``train`` section."""
    parts = [train.method.name, train.method.options.get("kind")]
    if train.loss and _compares_all_pairs(train):
        parts.append(train.loss.name)
    method = " ".join(filter(None, parts))
    ways = tuple(sorted(train.acceleration))
    return Kind(train.backbone.name, method, crop_size(train.image), train.mixed_precision, ways)


def step_cost(train: Train, device: torch.device) -> StepCost:
    """Cost of an optimisation step, the second of two: forward, backward and update.

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


def _compares_all_pairs(train: Train) -> bool:
    return train.loss is not None and (train.method.name, train.loss.name) in OF_ALL_PAIRS


def measured_learner(train: Train, *, classes: int, device: torch.device) -> tuple[Learner, Steps]:
    """A learner as a training has it past any warm-up, and its `Steps`.

    Weights are random, since they change no cost.

    Args:
        train: a recipe's ``train`` section, with a loss.
        classes: that it learns from.
        device: to measure on.
    """
    import torch

    from lookalike.workflow.training.loop import accelerate, seed_everything
    from lookalike.workflow.training.methods import LEARNERS
    from lookalike.workflow.training.steps import steps_of

    seed_everything(0)
    learner = LEARNERS[train.method.name](train.untrained(), classes=classes).to(device).train()
    learner.model.to(memory_format=torch.channels_last)
    accelerate(learner.model, train.acceleration)
    learner.set_epoch(train.budget.epochs)
    return learner, steps_of(learner, train.optimiser, device)


def now(device: torch.device) -> float:
    """Seconds on a clock, once the device has finished its work."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _measured(train: Train, device: torch.device, pictures: int) -> float:
    """Seconds of a step of so many pictures."""
    import torch

    learner, steps = measured_learner(train, classes=pictures // PER_CLASS, device=device)
    images = torch.randn(pictures, 3, *crop_size(train.image), device=device)
    labels = torch.arange(pictures, device=device) // PER_CLASS
    taken = 0.0
    for _ in range(2):  # the first one also allocates
        started = now(device)
        steps.optimiser.zero_grad()
        steps.take(learner(images, labels))
        taken = now(device) - started
    return taken


@dataclass(frozen=True)
class DataSheet:
    """A card's limits a second, as its maker states them: dense products, and bytes to and from its memory."""

    name: str
    flop: float  # TF32
    half_flop: float
    moved: float


H100 = DataSheet("NVIDIA H100 SXM", flop=494e12, half_flop=989e12, moved=3.35e12)


@dataclass(frozen=True)
class Work:
    """Floating point operations, and bytes that operations read and write one by one."""

    flop: float = 0.0
    moved: float = 0.0

    def times(self, pictures: int) -> Work:
        """Of so many pictures."""
        return Work(pictures * self.flop, pictures * self.moved)

    def seconds(self, card: DataSheet, *, half: bool) -> float:
        """Least seconds of the work on a card."""
        return max(self.flop / (card.half_flop if half else card.flop), self.moved / card.moved)


def work_of(train: Train) -> tuple[Work, Work]:
    """Work of the network for a picture of a step, and for one of a search, counted without computing.

    Heads, losses and optimiser are left out, and what a method passes through the network a second time.

    Args:
        train: a recipe's ``train`` section.
    """
    backbone = canonical({**train.backbone.dump(), "weights": None})
    return _counted(backbone, crop_size(train.image), train.mixed_precision)


@cache
def _counted(backbone: str, size: tuple[int, int], half: bool) -> tuple[Work, Work]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import FlopCounterMode

    from lookalike.models.backbones import Trunk

    class Moved(TorchDispatchMode):  # type: ignore[no-untyped-call]
        total = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            if func._schema.name.split("::")[-1] not in NO_WORK:
                tensors = (each for each in tree_leaves((args, kwargs, result)) if isinstance(each, torch.Tensor))
                self.total += sum(each.numel() * each.element_size() for each in tensors)
            return result

    with torch.device("meta"):
        trunk = Trunk(**json.loads(backbone))
        images = torch.empty(COUNTED, 3, *size)
    if half:
        trunk, images = trunk.half(), images.half()
    works = []
    for learns in (True, False):
        moved, flop = Moved(), FlopCounterMode(display=False)  # type: ignore[no-untyped-call]
        with torch.set_grad_enabled(learns), moved, flop:
            last = trunk.train(learns)(images)[-1]
            if learns:
                last.sum().backward()
        works.append(Work(flop.get_total_flops() / COUNTED, moved.total / COUNTED))
    return works[0], works[1]
