"""Maps of any size on one grid of cells, so that no measure depends on the resolution of a method."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

GRID = 14  # cells to a side, of all measures


def pooled(maps: Tensor, side: int = GRID) -> Tensor:
    """Mean of each map over each cell, a pixel counting by the part of it that lies in the cell.

    Args:
        maps: ``(N, h, w)`` float, coarser or finer than the grid.
        side: cells to a side.

    Returns:
        ``(N, side, side)`` float32: coarser than the sums, so that equal places stay equal however they are summed.

    Raises:
        ValueError: for another shape, values that are not finite, or a side below 1.

    Differs: ``adaptive_avg_pool2d`` counts all of a pixel in every cell that it touches, which blurs where the sizes do
    not divide each other.
    """
    require_maps("maps", maps)
    if side < 1:
        raise ValueError(f"side={side} must be at least 1")
    rows, columns = (_overlaps(size, side).to(maps.device) for size in maps.shape[1:])
    return (rows @ maps.double() @ columns.T).float()


def cell_order(maps: Tensor, generator: torch.Generator) -> Tensor:
    """Cells of each map from the highest to the lowest, those of equal height in random order.

    Args:
        maps: ``(N, h, w)`` float.
        generator: on the CPU, decides between equal cells; the same whatever the values are.

    Returns:
        ``(N, h w)`` int64, numbers of cells row by row.
    """
    require_maps("maps", maps)
    values = maps.flatten(1)
    shuffled = torch.rand(values.shape, generator=generator).argsort(dim=1).to(maps.device)
    order = values.gather(1, shuffled).argsort(dim=1, descending=True, stable=True)
    return shuffled.gather(1, order)


def on_pixels(cells: Tensor, size: tuple[int, int]) -> Tensor:
    """The pixels of cells.

    Args:
        cells: ``(N, side, side)`` bool.
        size: height and width of the image, at least one pixel for each cell.

    Returns:
        ``(N, H, W)`` bool: a pixel belongs to the cell that holds its centre.

    Raises:
        ValueError: for an image with fewer pixels than cells to a side.
    """
    if size[0] < cells.shape[1] or size[1] < cells.shape[2]:
        raise ValueError(f"an image of size={size} is too small for {tuple(cells.shape[1:])} cells of a pixel or more")
    return F.interpolate(cells[:, None].float(), size=size, mode="nearest-exact")[:, 0] > 0


def require_maps(name: str, maps: Tensor) -> None:
    """Refuse what is no stack of maps.

    Raises:
        ValueError: for another shape than ``(N, h, w)`` with pixels, integers, NaN or infinity.
    """
    if maps.ndim != 3 or not maps.shape[1] * maps.shape[2] or not maps.is_floating_point():
        raise ValueError(f"{name} must be (N, h, w) float, not {tuple(maps.shape)} {maps.dtype}")
    finite = maps.isfinite().flatten(1).all(dim=1)
    if not bool(finite.all()):
        raise ValueError(f"{name}[{int((~finite).nonzero()[0])}] holds NaN or infinity; values of maps must be finite")


def _overlaps(size: int, side: int) -> Tensor:
    """Share of each cell that each pixel covers along one axis, ``(side, size)`` float64; rows sum to 1."""
    cells, pixels = torch.arange(side + 1) * size, torch.arange(size + 1) * side  # edges, in whole numbers
    low = torch.maximum(cells[:-1, None], pixels[:-1])
    high = torch.minimum(cells[1:, None], pixels[1:])
    return (high - low).clamp_min(0).double() / size
