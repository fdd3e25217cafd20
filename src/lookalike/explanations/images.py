"""The images that an explanation is asked about."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ROLES = ("query", "gallery", "negative")


def stacked(images: Sequence[Tensor | None]) -> Tensor:
    """Images of two or three roles, ``(R, N, 3, H, W)``.

    Args:
        images: of query, gallery and perhaps negative, each ``(3, H, W)`` or ``(N, 3, H, W)``.

    Raises:
        ValueError: if a shape is another, or they differ.
    """
    given = [(role, each) for role, each in zip(ROLES, images, strict=False) if each is not None]
    shaped = [each[None] if each.ndim == 3 else each for _, each in given]
    for (role, each), image in zip(given, shaped, strict=True):
        if image.ndim != 4 or image.shape[1] != 3 or not each.is_floating_point():
            raise ValueError(
                f"{role} has shape {tuple(each.shape)} and dtype {each.dtype}, it must be (3, H, W) or (N, 3, H, W) "
                "float"
            )
        if image.shape != shaped[0].shape:
            raise ValueError(
                f"{role} has shape {tuple(each.shape)}, it must be that of the query, {tuple(given[0][1].shape)}"
            )
    return torch.stack(shaped)


def on_grid(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """Values of locations ``(N, h w)`` as maps ``(N, h, w)``."""
    return values.view(len(values), *grid)
