"""The training loop, and accelerations that round otherwise."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lookalike.models.backbones import Trunk
from lookalike.workflow.settings.recipes import Budget, Train
from lookalike.workflow.training.checkpoint import ResumeFile, kept_aside
from lookalike.workflow.training.images import Loader
from lookalike.workflow.training.learner import Learner
from lookalike.workflow.training.optimiser import set_rates
from lookalike.workflow.training.steps import DivergedError, steps_of, take_step

State = dict[str, Tensor]
Measure = Callable[[], Mapping[str, float]]
# Beside these `lookalike.workflow.training.learner.BFLOAT16`, in which a learner then computes.
COMPILE, CUDNN_BENCHMARK = "compile", "cudnn_benchmark"


@dataclass
class Fit:
    """Outcome of a training: states of model and loss on its device, and one line per epoch."""

    last: State
    best: State
    best_epoch: int
    history: list[dict[str, float]] = field(default_factory=list)


def fit(
    learner: Learner,
    loader: Loader,
    labels: Tensor,
    sampler: Any,
    settings: Train,
    *,
    seed: int,
    measure: Measure,
    resume: ResumeFile,
    device: torch.device,
    keep: int | None = None,
) -> Fit:
    """Train a model, from where an earlier attempt was killed if there was one.

    Every epoch starts from seeds of its own, so a resumed training draws what an unbroken one would have drawn; on
    the CPU it ends with the same weights bit for bit.

    Args:
        learner: model and loss, and what its method does with a batch.
        loader: loads the training pictures.
        labels: ``(N,)`` int64, of all training pictures.
        sampler: batches of indices, as many in each epoch, with ``set_epoch``.
        settings: of the recipe: its optimiser, schedule and budget are read.
        seed: seed of the run's draws.
        measure: gives retrieval metrics of the model as it is; ``R@1`` chooses the best epoch.
        resume: file that keeps the state between epochs.
        device: device to train on.
        keep: epoch whose state is kept as the best, whatever ``measure`` says; no metric then ends the training.

    Returns:
        The states after the last epoch and after the epoch with the best ``R@1`` (the first of several), or ``keep``.

    Raises:
        DivergedError: for a loss that is no finite number, naming its parts and what is kept.
        ValueError: if the memory of the device is too small, naming how many pictures fit.
    """
    budget = settings.budget
    steps = steps_of(learner, settings.optimiser, device)
    optimiser = steps.optimiser
    fitted = Fit(last=kept_aside(learner.state_dict()), best=kept_aside(learner.state_dict()), best_epoch=0)
    start = 0
    if (state := resume.read()) is not None:
        start = state["epoch"]
        learner.load_state_dict(state["last"])
        optimiser.load_state_dict(state["optimiser"])
        steps.load_state_dict(state["scaler"])
        fitted = Fit(kept_aside(learner.state_dict()), state["best"], state["best_epoch"], state["history"])
        print(f"continuing after epoch {start} of {budget.epochs}")

    def loaded(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        sampler.set_epoch(epoch)
        return loader.batches(sampler, seed=_epoch_seed(seed, epoch))

    upcoming: Iterator[tuple[Tensor, Tensor]] | None = None
    for epoch in range(start, budget.epochs):
        started = time.monotonic()
        seed_everything(_epoch_seed(seed, epoch))
        batches = upcoming or loaded(epoch)
        learner.set_epoch(epoch)
        learner.train()
        steps.begin(epoch)
        seen = 0
        try:
            for batch, (pictures, rows) in enumerate(batches):
                done = (epoch + batch / len(sampler)) / budget.epochs
                set_rates(optimiser, settings.optimiser.lr, settings.schedule, epoch, done)
                optimiser.zero_grad()
                take_step(steps, learner, pictures, labels[rows])
                seen += len(rows)
            steps.read()
        except DivergedError as error:
            raise DivergedError(f"{error}{_parts(learner)}. {_kept(resume)}") from None
        mean = math.fsum(steps.losses) / max(len(steps.losses), 1)
        line: dict[str, float] = {"epoch": epoch + 1, "loss": mean} | learner.measures()
        last_epoch = epoch + 1 == budget.epochs
        # Before the search, during which loading processes then work.
        upcoming = None if last_epoch else loaded(epoch + 1)
        rate = seen / (time.monotonic() - started)
        if (epoch + 1) % budget.evaluate_every == 0 or last_epoch:
            line |= measure()
        fitted.history.append(line)
        fitted.last = kept_aside(learner.state_dict())
        earlier = [old["R@1"] for old in fitted.history[:-1] if "R@1" in old]
        if epoch + 1 == keep if keep is not None else line.get("R@1", -1) > max(earlier, default=-1):
            fitted.best, fitted.best_epoch = fitted.last, epoch + 1
        ends = last_epoch or (keep is None and _is_hopeless(fitted, budget))
        if not ends:
            resume.hold(
                {"epoch": epoch + 1, "last": fitted.last, "best": fitted.best, "best_epoch": fitted.best_epoch}
                | {"history": list(fitted.history), "optimiser": kept_aside(optimiser.state_dict())}
                | {"scaler": steps.state_dict()}
            )
        # Behind what is held: whoever reads of an epoch may end the training, and must not lose it.
        _report(line, budget.epochs, rate, (time.monotonic() - started) * (budget.epochs - epoch - 1))
        if ends:
            break
    return fitted


def _parts(learner: Learner) -> str:
    """Parts of the loss, on average over this epoch; a divergence began in a part that is no number."""
    measures = learner.measures()
    return f" ({', '.join(f'{name} {value:.3g}' for name, value in measures.items())})" if measures else ""


def _kept(resume: ResumeFile) -> str:
    """Words on the state that a training leaves when it is broken off."""
    if not (epochs := resume.held_epochs):
        return "No epoch was finished"
    return f"The state after epoch {epochs} is kept in {resume.path}"


def seed_everything(seed: int) -> None:
    """Seed every global generator; miners and losses of libraries draw from these."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  (libraries use the global one)
    torch.manual_seed(seed)


def _is_hopeless(fitted: Fit, budget: Budget) -> bool:
    """Whether ``R@1`` has not improved for ``patience`` epochs, or has fallen to a share of its best."""
    scores = [line["R@1"] for line in fitted.history if "R@1" in line]
    if budget.patience is not None and len(fitted.history) - fitted.best_epoch >= budget.patience:
        return True
    return budget.collapse is not None and bool(scores) and scores[-1] <= budget.collapse * max(scores)


def _epoch_seed(seed: int, epoch: int) -> int:
    return seed * 100_003 + epoch


def _report(line: Mapping[str, float], epochs: int, rate: float, left_s: float) -> None:
    measures = f"  R@1 {100 * line['R@1']:.1f}" if "R@1" in line else ""
    remaining = f"{left_s / 60:.0f} min" if left_s > 90 else f"{left_s:.0f} s"
    print(
        f"epoch {line['epoch']:.0f}/{epochs}  loss {line['loss']:.4f}{measures}  {rate:.0f} images/s  {remaining} left"
    )


def accelerate(model: nn.Module, ways: Collection[str]) -> None:
    """Prepare a model, which stays the same module with the same state.

    Args:
        model: network with a `Trunk` somewhere, which takes nearly all of the time.
        ways: ``compile`` compiles the trunk when it is first used, ``cudnn_benchmark`` lets cuDNN try its kernels.
    """
    if CUDNN_BENCHMARK in ways:
        torch.backends.cudnn.benchmark = True
    if COMPILE in ways:
        for module in model.modules():
            if isinstance(module, Trunk):
                module.compile()
