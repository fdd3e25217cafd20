"""Say which batch would fit, where one does not fit into the memory of a device."""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.training.learner import Learner
from lookalike.training.steps import Steps


def take_step(steps: Steps, learner: Learner, pictures: Tensor, labels: Tensor) -> None:
    """One step down the loss of a batch.

    A batch is not cut into parts that are added up: losses here compare pictures of a batch with each other, and batch
    norm its statistics, so that the gradient would be another one.

    Args:
        steps: takes the step.
        learner: model and loss.
        pictures: images ``(B, 3, H, W)`` on the device.
        labels: ``(B,)`` int64.

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
