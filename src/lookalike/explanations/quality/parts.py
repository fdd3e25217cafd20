"""Maps against annotations: agreement on parts, transfer of points from part to part, and mass inside the object.

Part agreement: a part's value is that of the map where it lies. Those of the parts that both images of a pair show are
compared by their ranks. Maps of any two such images may agree, say if a head always stands out; a table therefore shows
the agreement of pairs less that of the same queries, explained anew, with random partners.

Point transfer. Symbols: ``C[i, j]`` evidence between cell i of the first and cell j of the second image, larger means
more alike; ``V`` parts that both show. A part of the first image lies in a cell i and is sent to the centre of the cell
``argmax_j C[i, j]``. It is right if that is no farther from the true part than ``reach``, alpha times the longer side
of the object's box: PCK@alpha (percentage of correct key points), here a share of V. Source: Yang and Ramanan,
"Articulated human detection with flexible mixtures of parts" (2013). Differs: cells with equal evidence each count by
their share, in place of the first of them.

Mass inside the object: how much of a map lies on it, less what a bell in the middle would put there. It says whether a
map is on the object, not why a pair is alike. Maps are taken as their method gives them, of similarities and of
distances: where evidence lies, whatever it says. Source: relevance mass accuracy of Arras, Osman and Samek, "CLEVR-XAI"
(2022), as in Quantus (Hedström et al., 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.explanations.quality.cells import centre_maps, pooled, require_maps, spearman

FEWEST = 5  # parts that both must show
ALPHAS = (0.1, 0.2)


@dataclass(frozen=True)
class Parts:
    """Points and visibility of the parts of N images of one size.

    Attributes:
        points: ``(N, K, 2)`` float, x and y in pixels of the image.
        visible: ``(N, K)`` bool.
        size: height and width of the images.
    """

    points: Tensor
    visible: Tensor
    size: tuple[int, int]

    def __post_init__(self) -> None:
        if self.points.ndim != 3 or self.points.shape[2] != 2 or self.visible.shape != self.points.shape[:2]:
            raise ValueError(
                f"points must be (N, K, 2) and visible (N, K), not {tuple(self.points.shape)} and "
                f"{tuple(self.visible.shape)}"
            )
        if not bool(self.points.isfinite().all()):
            raise ValueError("points must hold finite numbers only, those of hidden parts too")
        if not bool(within(self.points, self.size)[self.visible].all()):
            raise ValueError(f"a visible part lies outside its image of size={self.size}; follow it with seen_points")

    def cells(self, grid: tuple[int, int]) -> Tensor:
        """Number ``(N, K)`` int64 of the cell that holds each part, row by row of a grid; of hidden ones any."""
        (height, width), (rows, columns) = self.size, grid
        across = (self.points[..., 0] * columns / width).floor().clamp(0, columns - 1)
        down = (self.points[..., 1] * rows / height).floor().clamp(0, rows - 1)
        return (down * columns + across).long()


def within(points: Tensor, size: tuple[int, int]) -> Tensor:
    """Whether points ``(..., 2)`` lie in an image of this height and width, ``(...)`` bool."""
    x, y = points.unbind(-1)
    return (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])


def part_agreement(maps: tuple[Tensor, Tensor], parts: tuple[Parts, Parts], fewest: int = FEWEST) -> Tensor:
    """Spearman's correlation between the two maps of a pair, over the parts that both images show.

    Args:
        maps: of first and second images, each ``(N, h, w)`` on the grid that all methods share.
        parts: of both.
        fewest: parts of a pair that counts.

    Returns:
        ``(N,)`` float64 in [-1, 1]; NaN with fewer parts, or where a map says the same of all.

    Raises:
        ValueError: for maps and parts that do not belong together, or ``fewest`` below 2.
    """
    if fewest < 2:
        raise ValueError(f"fewest={fewest} must be at least 2: fewer values have no order")
    first, second = (values_of_parts(*each) for each in zip(maps, parts, strict=True))
    both = parts[0].visible & parts[1].visible
    return spearman(first, second, both).masked_fill(both.sum(dim=1) < fewest, torch.nan)


def values_of_parts(maps: Tensor, parts: Parts) -> Tensor:
    """Value of each map at each part, bilinear between the centres of cells.

    Args:
        maps: ``(N, h, w)``.
        parts: of the N images.

    Returns:
        ``(N, K)`` float32, so that equal places stay equal; of hidden parts any finite number.

    Raises:
        ValueError: for another number of maps than images, or maps that are none.
    """
    require_maps("maps", maps)
    if len(maps) != len(parts.points):
        raise ValueError(f"{len(parts.points)} images need a map each, not {len(maps)}")
    height, width = parts.size
    places = 2 * parts.points.double() / parts.points.new_tensor([width, height]).double() - 1  # from -1 to 1
    found = F.grid_sample(maps.double()[:, None], places[:, None], padding_mode="border", align_corners=False)
    return found[:, 0, 0].float()


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


def mass_inside(maps: Tensor, objects: Tensor) -> Tensor:
    """Share of a map's mass above zero that lies on the object; the mass of a cell is spread evenly over it.

    Args:
        maps: ``(N, side, side)``, on the grid that all methods share.
        objects: ``(N, H, W)`` bool, pixels of the object.

    Returns:
        ``(N,)`` float64 in [0, 1]; NaN for a map without anything above zero.

    Raises:
        ValueError: for maps that are not square or not as many as objects.
    """
    require_maps("maps", maps)
    if maps.shape[1] != maps.shape[2] or objects.ndim != 3 or len(maps) != len(objects):
        raise ValueError(
            f"maps must be (N, side, side) and objects (N, H, W), not {tuple(maps.shape)} and {tuple(objects.shape)}"
        )
    mass = maps.double().clamp_min(0).flatten(1)
    covered = pooled(objects.double(), maps.shape[1]).double().flatten(1)  # share of each cell
    return (mass * covered).sum(dim=1) / mass.sum(dim=1)


def mass_beyond_centre(maps: Tensor, objects: Tensor) -> Tensor:
    """`mass_inside` less that of the centre's bell on the same grid, ``(N,)`` in [-1, 1]; arguments as there."""
    found = mass_inside(maps, objects)
    (bell,) = centre_maps(objects[None], maps.shape[1])
    return found - mass_inside(bell, objects)
