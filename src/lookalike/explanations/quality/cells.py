"""Maps of any size on one grid of cells, so that no measure depends on their resolution, and their rank correlations.

Control maps know nothing of the pair: what an explanation has to be better than.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

GRID = 14  # cells to a side, of all measures
SPREAD = 0.25  # deviation of the centre's bell, of the image's sides
SOBEL = ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0))
LUMA = (0.299, 0.587, 0.114)


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
    """Refuse a tensor that is no stack of maps.

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


def spearman(first: Tensor, second: Tensor, kept: Tensor | None = None) -> Tensor:
    """Spearman's correlation of each row; equal values share their mean rank.

    Args:
        first: ``(N, M)`` finite.
        second: ``(N, M)`` finite.
        kept: ``(N, M)`` bool, the values that count; all of them without.

    Returns:
        ``(N,)`` float64 in [-1, 1]; NaN for a row with fewer than two values, or with equal ones only.

    Raises:
        ValueError: if shapes differ, or a value is not finite.
    """
    kept = torch.ones_like(first, dtype=torch.bool) if kept is None else kept
    if not first.shape == second.shape == kept.shape or first.ndim != 2:
        shapes = ", ".join(str(tuple(each.shape)) for each in (first, second, kept))
        raise ValueError(f"first, second and kept must all be (N, M), not {shapes}")
    if not bool((first.isfinite() & second.isfinite()).all()):
        raise ValueError("first and second must hold finite numbers only, not NaN or infinity")
    counts = kept.sum(dim=1, keepdim=True)
    one, other = (_centred(_ranks(values.double(), kept), kept, counts) for values in (first, second))
    return (one * other).sum(dim=1) / (one.square().sum(dim=1) * other.square().sum(dim=1)).sqrt()


def mean_ranks(values: Tensor) -> Tensor:
    """Ranks of each row ``(N, M)`` from 0, float64; equal values share their mean rank."""
    return _ranks(values.double(), torch.ones_like(values, dtype=torch.bool))


def _ranks(values: Tensor, kept: Tensor) -> Tensor:
    """Mean ranks ``(N, M)`` from 0; values that are not kept come after all others."""
    values = values.masked_fill(~kept, torch.inf)
    ordered = values.sort(dim=1).values
    below, up_to = (torch.searchsorted(ordered, values, right=right) for right in (False, True))
    return (below + up_to - 1).double() / 2


def _centred(ranks: Tensor, kept: Tensor, counts: Tensor) -> Tensor:
    mean = ranks.masked_fill(~kept, 0).sum(dim=1, keepdim=True) / counts
    return (ranks - mean).masked_fill(~kept, 0)


def random_maps(images: Tensor, side: int, seed: int) -> tuple[Tensor, ...]:
    """Even random numbers, ``(N, side, side)`` for each role of ``(R, N, 3, H, W)`` images."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.rand(*images.shape[:2], side, side, generator=generator).to(images.device).unbind(0))


def centre_maps(images: Tensor, side: int) -> tuple[Tensor, ...]:
    """A bell around the middle of the image."""
    places = (torch.arange(side, device=images.device) + 0.5) / side - 0.5
    bell = torch.exp(-(places[:, None].square() + places.square()) / (2 * SPREAD**2))
    return tuple(bell.expand(images.shape[1], side, side) for _ in images)


def edge_maps(images: Tensor, side: int) -> tuple[Tensor, ...]:
    """Mean length of the brightness's gradient (Sobel) in each cell."""
    weights = images.new_tensor(LUMA)
    grey = (images.flatten(0, 1) * weights[:, None, None]).sum(dim=1, keepdim=True)
    kernel = images.new_tensor(SOBEL)
    both = F.conv2d(F.pad(grey, (1, 1, 1, 1), mode="replicate"), torch.stack([kernel, kernel.T])[:, None])
    length = F.adaptive_avg_pool2d(both.square().sum(dim=1, keepdim=True).sqrt(), side)[:, 0]
    return tuple(length.view(*images.shape[:2], side, side).unbind(0))
