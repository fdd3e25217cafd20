"""Planted difference: of two equal pictures one gets a box of another picture, which the map must find.

Two measures, both of the order of cells alone, so that maps without a sum (attention, Grad-CAM) have them like those
with one, whatever their scale:

- ``planted_rank``, the measure of the table: with which probability a cell of the box lies above one outside, 0.5 by
  chance. A map that is zero in many places, as those cut off at zero are, is judged by all its cells.
- ``planted_hits``: whether the highest cell lies in the box, by chance as often as the box is large.

What is high is what tells the pair apart: the map of a distance as it is, that of a similarity with its sign changed
(`lookalike.explanations.quality.signs.of_difference`). A map that only shows what is alike says of its lowest places
that they differ. A share of the map's mass is no measure here: maps of likeness have it where the pictures are equal.

Source: the patch test of Huber et al., "Efficient Explainable Face Verification based on Similarity Score Argument
Backpropagation" (WACV 2024). Differs: the patch is a box of another picture from the same place, and lies on the grid
that maps are pooled to, so that chance is its area.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.explanations.quality.pooled import GRID, on_pixels, require_maps
from lookalike.explanations.quality.ranks import mean_ranks

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
        the share of the cells that are in the box.

    Raises:
        ValueError: if shapes differ.
    """
    _require_boxes(maps, boxes)
    highest = (maps == maps.amax(dim=(1, 2), keepdim=True)).double()
    return (highest * boxes.to(maps.device)).sum(dim=(1, 2)) / highest.sum(dim=(1, 2))


def planted_rank(maps: Tensor, boxes: Tensor) -> Tensor:
    """Probability that a cell of the box lies above a cell outside, equal ones counting half.

    Args:
        maps: ``(N, side, side)`` on the grid of the boxes, high where a pair differs.
        boxes: ``(N, side, side)`` bool.

    Returns:
        ``(N,)`` float64 in [0, 1]: 1 where the whole box is above everything else, 0.5 by chance and for a map that is
        the same everywhere.

    Raises:
        ValueError: if shapes differ.

    Source: Mann and Whitney (1947); the area under the ROC curve of the map as a detector of the box.
    """
    _require_boxes(maps, boxes)
    inside = boxes.to(maps.device).flatten(1)
    ranks = mean_ranks(maps.flatten(1))  # from 0
    count = inside.sum(dim=1).double()
    below = torch.where(inside, ranks, 0).sum(dim=1) - count * (count - 1) / 2  # pairs in which the box is higher
    return below / (count * (inside.shape[1] - count))


def _require_boxes(maps: Tensor, boxes: Tensor) -> None:
    require_maps("maps", maps)
    if maps.shape != boxes.shape:
        raise ValueError(f"maps have shape {tuple(maps.shape)}, they must have that of boxes, {tuple(boxes.shape)}")
