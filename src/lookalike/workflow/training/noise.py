"""The training images of one run: all of them, fewer classes, or noise in labels or images (Contextual, Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from lookalike.workflow.settings.recipes import Noise
from lookalike.workflow.training.roles import Role


def noisy_labels(labels: Tensor, share: float, generator: torch.Generator, *, classes: Tensor | None = None) -> Tensor:
    """Labels of which a share is drawn anew, each uniformly among the classes; the true one can come again.

    Args:
        labels: ``(N,)`` int64.
        share: share of images drawn, in [0, 1]; 0.05, 0.1 and 0.2 in the paper. Rounded to whole images.
        generator: source of the draw. Draw once per run: the noise stays fixed while training.
        classes: ``(C,)`` labels to draw from, those present if left out.

    Returns:
        ``(N,)``, a new tensor in the dtype of ``labels``.

    Raises:
        ValueError: if ``labels`` are not ``(N,)`` or ``share`` is outside [0, 1].

    Source: Supervised Metric Learning to Rank, Fig. 6 (no released code; that the true label can come is our reading).
    """
    if labels.ndim != 1:
        raise ValueError(f"labels have shape {tuple(labels.shape)}, (N,) is needed")
    classes = torch.unique(labels) if classes is None else classes
    drawn = images_to_replace(len(labels), share, generator).to(labels.device)
    new = torch.randint(len(classes), (len(drawn),), generator=generator, device=generator.device)
    noisy = labels.clone()
    noisy[drawn] = classes.to(labels)[new.to(labels.device)]
    return noisy


def images_to_replace(images: int, share: float, generator: torch.Generator) -> Tensor:
    """Indices of a random share of the images, ascending, ``(round(share * images),)`` int64.

    Args:
        images: number of training images.
        share: share of images drawn, in [0, 1].
        generator: source of the draw; the indices lie on its device.

    Raises:
        ValueError: if ``share`` is outside [0, 1] or ``images`` is negative.
    """
    if images < 0:
        raise ValueError(f"images={images} is negative")
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is outside [0, 1]")
    order = torch.randperm(images, generator=generator, device=generator.device)
    return order[: round(share * images)].sort().values


def of_first_classes(labels: Tensor, count: int) -> Tensor:
    """Whether an image belongs to the ``count`` lowest labels, ``(N,)`` bool; 50 to 90 of 100 in the paper.

    Raises:
        ValueError: if ``labels`` are not ``(N,)`` or ``count`` is outside ``[1, classes]``.
    """
    if labels.ndim != 1:
        raise ValueError(f"labels have shape {tuple(labels.shape)}, (N,) is needed")
    classes = torch.unique(labels)
    if not 1 <= count <= len(classes):
        raise ValueError(f"count={count} is outside [1, {len(classes)}], the number of classes")
    kept: Tensor = labels <= classes[count - 1]
    return kept


def disturbed(training: Role, noise: Noise, strangers: Sequence[Path], *, seed: int) -> Role:
    """Training pictures with the noise of a recipe, drawn once per run.

    First classes are left out, then labels are drawn anew, then pictures replaced, their labels kept.

    Args:
        training: training pictures as the split has them.
        noise: of the recipe.
        strangers: pictures of no class of the data set, drawn without repetition while they last.
        seed: seed of the run's draws.

    Raises:
        ValueError: if pictures are to be replaced and there are no strangers.
    """
    if noise.images > 0 and not strangers:
        raise ValueError(f"noise.images={noise.images} needs strangers to replace pictures by, there are none")
    generator = torch.Generator().manual_seed(seed)
    if noise.classes < 1:
        count = round(noise.classes * training.numbered()[1])
        training = training.chosen(of_first_classes(training.labels, count).nonzero().flatten())
    if noise.labels > 0:
        training = replace(training, labels=noisy_labels(training.labels, noise.labels, generator))
    if noise.images > 0:
        positions = images_to_replace(len(training.paths), noise.images, generator).tolist()
        order = torch.randperm(len(strangers), generator=generator).tolist()
        paths = list(training.paths)
        for number, position in enumerate(positions):
            paths[position] = strangers[order[number % len(order)]]
        training = replace(training, paths=paths)
    return training
