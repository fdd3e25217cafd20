"""Planted difference: of two equal pictures one gets a box of another picture, which the map must find.

Source: the patch test of Huber et al., "Efficient Explainable Face Verification based on Similarity Score Argument
Backpropagation" (WACV 2024). Differs: the patch is a box of another picture from the same place, and lies on the grid
that maps are pooled to, so that chance is its area.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.explanations.quality.pooled import GRID, on_pixels, require_maps

BOX = 4  # cells to a side of a box: 8.2 % of the grid of 14, as are 2 of 7


def draw_boxes(count: int, generator: torch.Generator, side: int = GRID, box: int = BOX) -> Tensor:
    """Boxes of cells, each at an even random place.

    Args:
        count: N.
        generator: on the CPU.
        side: cells to a side of the grid.
        box: cells to a side of the box.

    Returns:
        ``(N, side, side)`` bool.

    Raises:
        ValueError: for a box that is empty or not smaller than the grid.
    """
    if not 1 <= box < side:
        raise ValueError(f"box={box} is outside [1, {side - 1}], below the {side} cells of the grid")
    corner = torch.randint(side - box + 1, (2, count, 1), generator=generator)
    away = torch.arange(side) - corner  # (2, N, side)
    down, across = ((away >= 0) & (away < box)).unbind(0)
    return down[:, :, None] & across[:, None, :]


def planted(images: Tensor, donors: Tensor, boxes: Tensor) -> Tensor:
    """Images with a box of another picture in place of their own.

    Args:
        images: ``(N, 3, H, W)``.
        donors: ``(N, 3, H, W)``, other pictures.
        boxes: ``(N, side, side)`` bool.

    Returns:
        ``(N, 3, H, W)``: with ``images`` the pairs to be explained, equal but for the box.

    Raises:
        ValueError: if shapes do not belong together.
    """
    if images.shape != donors.shape or len(images) != len(boxes):
        raise ValueError(
            f"images {tuple(images.shape)} need donors of their shape and as many boxes, not {tuple(donors.shape)} and "
            f"{tuple(boxes.shape)}"
        )
    pixels = on_pixels(boxes.to(images.device), (images.shape[2], images.shape[3]))
    return torch.where(pixels[:, None], donors, images)


def planted_hits(maps: Tensor, boxes: Tensor) -> Tensor:
    """Whether the highest cell of a map of the difference lies in the box.

    Args:
        maps: ``(N, side, side)`` on the grid of the boxes, high where a pair differs, as of
            `lookalike.explanations.quality.signs.of_difference`.
        boxes: ``(N, side, side)`` bool.

    Returns:
        ``(N,)`` float64, 0 or 1; where several cells are the highest, the share of them in the box. By chance it is
        `area_share`.

    Raises:
        ValueError: if shapes differ.
    """
    require_maps("maps", maps)
    if maps.shape != boxes.shape:
        raise ValueError(f"maps have shape {tuple(maps.shape)}, they must have that of boxes, {tuple(boxes.shape)}")
    highest = (maps == maps.amax(dim=(1, 2), keepdim=True)).double()
    return (highest * boxes.to(maps.device)).sum(dim=(1, 2)) / highest.sum(dim=(1, 2))


def area_share(boxes: Tensor) -> Tensor:
    """Share of the cells that are in the box, ``(N,)`` float64."""
    return boxes.double().mean(dim=(1, 2))
