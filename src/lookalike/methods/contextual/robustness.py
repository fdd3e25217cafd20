"""Altered training sets of the robustness experiments (paper, Fig. 6): noisy labels, noisy images, fewer classes."""

from __future__ import annotations

import torch
from torch import Tensor


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
