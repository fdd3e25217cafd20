"""Steps of a training, whose losses are read from the device now and then, and the batch that fits its memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.workflow.settings.recipes import Optimiser
from lookalike.workflow.training.learner import Learner
from lookalike.workflow.training.optimiser import OF_THE_MODEL, build_optimiser

ATTACHED = "it has to follow from the embeddings, without detach(), no_grad() or item()"
READ_EVERY = 50  # steps on a CUDA device: each reading waits until it has done all that it was given


def steps_of(learner: Learner, settings: Optimiser, device: torch.device) -> Steps:
    """Steps of a learner on its device, by an optimiser of all its parameters.

    Args:
        learner: model and loss, on the device.
        settings: of the recipe's optimiser.
        device: a CUDA one gets fused steps, and its losses are read every `READ_EVERY` of them.
    """
    on_cuda = device.type == "cuda"
    return Steps(
        build_optimiser(settings, learner, fused=on_cuda),
        device,
        scaled=learner.mixed_precision and learner.half_type == torch.float16 and on_cuda,
        clip_norm=settings.clip_norm,
        read_every=READ_EVERY if on_cuda else 1,
        named=type(learner.loss).__name__,
    )


class DivergedError(ValueError):
    """A loss is no finite number any more."""


class Steps:
    """Takes steps, and keeps their losses where they are until `read`.

    From the first loss on that is not finite, no step changes a parameter: what is found only later is as it was then.

    Args:
        optimiser: what steps all parameters; with ``read_every`` above 1 a fused one, whose steps a flag on the device
            stops.
        scaled: whether losses are scaled, for gradients in float16.
        clip_norm: largest norm of the gradients of one group, or ``None``.
        read_every: steps between two readings.
        named: what messages call the loss.

    Attributes:
        optimiser: the optimiser that was given.
        losses: losses of this epoch's steps, as far as they are read.
    """

    def __init__(
        self,
        optimiser: torch.optim.Optimizer,
        device: torch.device,
        *,
        scaled: bool = False,
        clip_norm: float | None = None,
        read_every: int = 1,
        named: str = "the loss",
    ) -> None:
        self.optimiser = optimiser
        self._named = named
        self._reaches = False
        self._clip_norm = clip_norm
        self._read_every = read_every
        self._scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        self._failed = torch.zeros((), dtype=torch.bool, device=device)
        self._unread: list[Tensor] = []
        self._epoch = 0
        self.losses: list[float] = []

    def begin(self, epoch: int) -> None:
        """Start an epoch, counted from 0."""
        self._epoch = epoch
        self.losses = []

    def take(self, loss: Tensor) -> None:
        """One step down the gradient of a loss.

        Raises:
            DivergedError: naming the first batch with a loss that is not finite, if this is a step that reads.
            ValueError: naming the loss, for one that is no scalar or from which the network learns nothing.
        """
        self._check_form(loss)
        self._unread.append(loss.detach())
        if self._read_every == 1:
            self.read()  # before anything is changed
        self._failed = self._failed | ~loss.detach().isfinite()
        scaled = self._scaler.scale(loss)
        if self._scaler.is_enabled():
            # The scaler leaves a step out where a gradient is not finite, so that is what they become.
            scaled = scaled * torch.where(self._failed, torch.nan, 1.0)
        scaled.backward()  # type: ignore[no-untyped-call]
        self._check_reach()
        for group in self.optimiser.param_groups:
            if group["lr"] == 0:  # a resting part keeps its moments, too
                for parameter in group["params"]:
                    parameter.grad = None
        if self._clip_norm is not None:
            self._scaler.unscale_(self.optimiser)
            for group in self.optimiser.param_groups:
                nn.utils.clip_grad_norm_(group["params"], self._clip_norm)
        if self._read_every > 1 and not self._scaler.is_enabled():
            # Fused optimisers read it, and leave the step out where it is 1.
            self.optimiser.found_inf = self._failed.float()  # type: ignore[attr-defined]
        self._scaler.step(self.optimiser)
        self._scaler.update()
        if len(self._unread) >= self._read_every:
            self.read()

    def read(self) -> None:
        """Read the losses since the last reading.

        Raises:
            DivergedError: as `take`.
        """
        if not self._unread:
            return
        values = torch.stack(self._unread).tolist()
        self._unread.clear()
        for value in values:
            self.losses.append(value)
            if not math.isfinite(value):
                where = f"epoch {self._epoch + 1}, batch {len(self.losses)}"
                if self._epoch == 0 and len(self.losses) == 1:
                    raise DivergedError(f"{self._named} is {value} at {where}, a scalar before anything was learned")
                raise DivergedError(f"loss is {value} at {where}: training diverged")

    def _check_form(self, loss: Tensor) -> None:
        if not isinstance(loss, Tensor) or loss.ndim:
            found = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
            raise ValueError(
                f"{self._named} gives {found}, a scalar is right: one of shape (), as mean() and sum() make"
            )
        if not loss.requires_grad:
            raise ValueError(f"{self._named} gives a scalar without a gradient; {ATTACHED}")

    def _check_reach(self) -> None:
        """Refuse, once, a loss whose gradient does not reach the network, if the groups name its learned parts."""
        groups = [group for group in self.optimiser.param_groups if group.get("name") in OF_THE_MODEL]
        learned = [group["params"] for group in groups if group["lr"]]
        if learned and not self._reaches:
            self._reaches = any(parameter.grad is not None for parameters in learned for parameter in parameters)
            if not self._reaches:
                raise ValueError(f"{self._named} gives the network no gradient; {ATTACHED}")

    def state_dict(self) -> dict[str, Any]:
        """State that a resumed training needs beside the optimiser's: that of the gradient's scaler."""
        state: dict[str, Any] = self._scaler.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`."""
        self._scaler.load_state_dict(state)


def take_step(steps: Steps, learner: Learner, pictures: Tensor, labels: Tensor) -> None:
    """One step down the loss of a batch.

    A batch is not cut into parts that are added up: losses here compare pictures of a batch with each other, and batch
    norm its statistics, so that the gradient would be another one.

    Args:
        steps: takes the step.
        learner: model and loss.
        pictures: images ``(B, 3, H, W)`` on the device.
        labels: ``(B,)`` int64, on the host.

    Raises:
        ValueError: if the memory of the device is too small, naming the largest of B/2, B/4, ... pictures that fit.
        DivergedError: as `Steps.take`.
    """
    try:
        steps.take(learner(pictures, labels))
        return
    except torch.OutOfMemoryError as error:
        reason = ". ".join(
            str(error).split(". ")[:2]
        )  # outside of this block its frames no longer hold what did not fit
    fits = _fitting(steps, learner, pictures, labels)
    count, height, width = len(pictures), *pictures.shape[2:]
    advice = f"batch_size: {fits} fits" if fits else "not even one picture fits"
    raise ValueError(
        f"a batch of {count} pictures of {height} x {width} px does not fit into the memory of {pictures.device} "
        f"({reason}): {advice}, while nothing else uses the device; mixed_precision or a smaller crop_px needs less"
    )


def _fitting(steps: Steps, learner: Learner, pictures: Tensor, labels: Tensor) -> int:
    """The largest half, quarter, ... of a batch whose gradients fit; 0 if not even a picture does."""
    part = len(pictures) // 2
    while part:
        steps.optimiser.zero_grad()
        torch.cuda.empty_cache()
        try:
            learner(pictures[:part], labels[:part]).backward()
        except torch.OutOfMemoryError:
            part //= 2
        except ValueError:  # so few pictures have no pair to compare, and took less memory than that
            return part
        else:
            return part
    return 0
