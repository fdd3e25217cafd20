"""Point transfer: whether evidence from place to place leads from a part to the same part of the other image.

Symbols: ``C[i, j]`` evidence between cell i of the first and cell j of the second image, larger means more alike;
``V`` parts that both show. A part of the first image lies in a cell i and is sent to the centre of the cell
``argmax_j C[i, j]``. It is right if that is no farther from the true part than ``reach``, alpha times the longer side
of the object's box: PCK@alpha (percentage of correct key points), here a share of V.

Source: Yang and Ramanan, "Articulated human detection with flexible mixtures of parts" (2013), for PCK. Differs: cells
with equal evidence each count by their share, in place of the first of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.explanations.quality.annotations import Parts

ALPHAS = (0.1, 0.2)


def point_transfer(pairs: Tensor, grid: tuple[int, int], first: Parts, second: Parts, reach: Tensor) -> Tensor:
    """PCK of the evidence.

    Args:
        pairs: ``(N, R, R)`` evidence, row by row of the grid, as of `lookalike.explain`.
        grid: height and width of the grid of both images.
        first: parts of the first images.
        second: of the second.
        reach: ``(N,)`` in pixels of the second, how far off a point may be: a share `ALPHAS` of its box's longer side.

    Returns:
        ``(N,)`` float64 in [0, 1]; NaN for a pair without a part that both show.

    Raises:
        ValueError: if shapes do not belong together.
    """
    cells = grid[0] * grid[1]
    if pairs.shape != (len(first.points), cells, cells):
        raise ValueError(
            f"pairs must be ({len(first.points)}, {cells}, {cells}) for a grid of {grid}, not {tuple(pairs.shape)}"
        )
    right = _right(grid, first, second, reach)
    here = first.cells(grid)[..., None].expand(-1, -1, cells)  # (N, K, R)
    evidence = pairs.gather(1, here)
    best = (evidence == evidence.amax(dim=2, keepdim=True)).double()
    return _mean_of_parts((best * right).sum(dim=2) / best.sum(dim=2), first, second)


def same_place(grid: tuple[int, int], first: Parts, second: Parts, reach: Tensor) -> Tensor:
    """PCK ``(N,)`` of staying in the same cell, as two pictures with the object in the middle allow.

    Raises:
        ValueError: as `point_transfer`.
    """
    right = _right(grid, first, second, reach)
    return _mean_of_parts(right.gather(2, first.cells(grid)[..., None])[..., 0].double(), first, second)


def ceiling(grid: tuple[int, int], first: Parts, second: Parts, reach: Tensor) -> Tensor:
    """PCK ``(N,)`` of the best evidence that such a grid can hold.

    A part may be farther than the reach from every centre, and parts in one cell of the first image are all sent to one
    cell of the second.

    Raises:
        ValueError: as `point_transfer`.
    """
    right = _right(grid, first, second, reach).double()
    here, shown = first.cells(grid), first.visible & second.visible
    together = (here[:, :, None] == here[:, None, :]) & shown[:, :, None] & shown[:, None, :]  # (N, K, K)
    together = together.double()
    # The most of a cell's parts that one aim serves, shared out evenly among them.
    served = (together @ right).amax(dim=2) / together.sum(dim=2)
    return _mean_of_parts(served, first, second)


def _right(grid: tuple[int, int], first: Parts, second: Parts, reach: Tensor) -> Tensor:
    """Whether the centre of each cell is within reach of each part of the second images, ``(N, K, R)`` bool."""
    if first.points.shape != second.points.shape or reach.shape != (len(second.points),):
        raise ValueError(
            "first, second and reach must be (N, K, 2), (N, K, 2) and (N,), not "
            f"{tuple(first.points.shape)}, {tuple(second.points.shape)} and {tuple(reach.shape)}"
        )
    (height, width), (rows, columns) = second.size, grid
    points = second.points.double()
    down = (torch.arange(rows, device=points.device) + 0.5) * height / rows
    across = (torch.arange(columns, device=points.device) + 0.5) * width / columns
    centres = torch.cartesian_prod(down, across).flip(1)  # (R, 2), x and y
    return (points[:, :, None] - centres).square().sum(dim=3) <= reach.double().square()[:, None, None]


def _mean_of_parts(values: Tensor, first: Parts, second: Parts) -> Tensor:
    shown = first.visible & second.visible
    return torch.where(shown, values, 0).sum(dim=1) / shown.sum(dim=1)
