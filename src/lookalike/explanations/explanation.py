"""Explanations of pairs or triplets, and the images that they are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

ROLES = ("query", "gallery", "negative")


@dataclass(frozen=True)
class Nodes:
    """Contributions of the nodes of AVSL's graph to a distance, lowest level first.

    Attributes:
        reliability: ``(N, L, r)``, p; one at the lowest level.
        difference: ``(N, L, r)``, delta: squared differences.
        sensitivity: ``(N, L, r)``, lambda: what a difference counts. Times it, summed over all, it is the distance.
        edges: per level above the lowest ``(r, r)``, which nodes below rectify a node, normalised.
    """

    reliability: Tensor
    difference: Tensor
    sensitivity: Tensor
    edges: tuple[Tensor, ...]


@dataclass(frozen=True)
class Explanation:
    """Why N queries are as close to N gallery images as they are, or closer to them than to N negatives.

    Attributes:
        method: that explains.
        measure: what is explained: ``cosine``, ``structural similarity``, or ``distance``, which grows with the
            difference. Values of maps, pairs and nodes point the same way.
        value: ``(N,)``, the measure between query and gallery image.
        maps: of queries and gallery images, with negatives also of these, each ``(N, h, w)``. Signed where
            ``explained`` is given. With negatives, a query's map is that of the pair less that of query and negative
            where maps have a sum: in a similarity what is above zero speaks for the gallery image, in a distance what
            is below zero. Maps without a sum show what makes the gallery image the closer one.
        explained: ``(N,)``, what the evidence sums to, or ``None`` for a method without a sum. Equal to ``value`` where
            the explanation is complete.
        pairs: ``(N, R, R')``, what each pair of locations adds, row by row of the grids of query and gallery image, or
            ``None``.
        grid: height and width of the grid of ``pairs``.
        nodes: of a graph, or ``None``.
    """

    method: str
    measure: str
    value: Tensor
    maps: tuple[Tensor, ...]
    explained: Tensor | None = None
    pairs: Tensor | None = None
    grid: tuple[int, int] | None = None
    nodes: Nodes | None = None

    @property
    def gap(self) -> Tensor | None:
        """``(N,)``, how far the sum of the evidence is from the measure, relative to it; ``None`` without a sum."""
        if self.explained is None:
            return None
        return (self.explained - self.value).abs() / self.value.abs().clamp(min=1e-6)


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
