"""The two sides of a search by AVSL's distance, and the order in which images of similar statistics lie together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookalike.methods.avsl.graph import Images, Step, graph_images

SOME = 4096  # images that are turned into float64 at once


class Side:
    """Images as they were given, of which some at a time are turned into float64.

    Raises:
        ValueError: if levels, images or nodes do not belong together, or a value is not finite.
    """

    def __init__(self, name: str, embeddings: Sequence[Tensor], statistics: Sequence[Tensor]) -> None:
        graph_images(name, [each[:1] for each in embeddings], [each[:1] for each in statistics], False)
        counts = {len(each) for each in (*embeddings, *statistics)}
        if len(counts) > 1:
            raise ValueError(f"{name} has levels of {min(counts)} and of {max(counts)} images, they must have as many")
        for kind, levels in (("embeddings", embeddings), ("statistics", statistics)):
            for level, values in enumerate(levels):
                if not bool(values.isfinite().all()):
                    raise ValueError(f"{name}_{kind}[{level}] holds a value that is not finite, distances need numbers")
        self._embeddings, self._statistics = embeddings, statistics
        self._lengths = [_lengths(each) for each in embeddings]
        self.device = embeddings[0].device
        self.count, self.nodes, self.levels = len(embeddings[0]), embeddings[0].shape[1], len(embeddings)

    def equals(self, other: Side) -> bool:
        """Whether both hold the same images in the same order."""
        parts = (self._embeddings, other._embeddings), (self._statistics, other._statistics)
        return all(torch.equal(one, that) for mine, its in parts for one, that in zip(mine, its, strict=True))

    def some(self, index: Tensor | slice) -> Images:
        """Some images in float64."""
        return Images(self.units(index), [_taken(each, index) for each in self._statistics])

    def units(self, index: Tensor | slice) -> list[Tensor]:
        """Their unit vectors alone, by level."""
        # Divided by float64, whatever is divided: one pass over the values.
        sides = zip(self._embeddings, self._lengths, strict=True)
        return [_rows(each, index) / _rows(lengths, index) for each, lengths in sides]


def _lengths(embeddings: Tensor) -> Tensor:
    """What the vectors ``(N, r)`` are divided by, as `torch.nn.functional.normalize` has it, ``(N, 1)`` float64."""
    parts = [torch.linalg.vector_norm(some.double(), dim=1, keepdim=True) for some in torch.split(embeddings, SOME)]
    return torch.cat(parts).clamp_(min=1e-12)


def _taken(values: Tensor, index: Tensor | slice) -> Tensor:
    return _rows(values, index).double()


def _rows(values: Tensor, index: Tensor | slice) -> Tensor:
    """Rows, by index_select, which is several times as fast as indexing with a tensor."""
    return values[index] if isinstance(index, slice) else values.index_select(0, index)


def similar_order(side: Side, direction: Tensor, steps: Sequence[Step]) -> Tensor:
    """Rows ``(N,)`` of all images, those of similar statistics together: by what they measure along a direction.

    Args:
        side: N images.
        direction: of `widest_direction`.
        steps: of the graph, above the lowest level.
    """
    parts = [slice(start, start + SOME) for start in range(0, side.count, SOME)]
    return torch.cat([_seen(side, part, steps) @ direction for part in parts]).argsort()


def widest_direction(side: Side, steps: Sequence[Step]) -> Tensor:
    """Direction in which the statistics differ most, by a few steps of the power method on the first `SOME` images.

    Args:
        side: images.
        steps: of the graph, above the lowest level.
    """
    seen = _seen(side, slice(SOME), steps)
    seen = seen - seen.mean(dim=0)
    direction = torch.ones_like(seen[0])
    for _ in range(8):
        direction = torch.nn.functional.normalize(seen.T @ (seen @ direction), dim=0)
    return direction


def _seen(side: Side, rows: slice, steps: Sequence[Step]) -> Tensor:
    """Statistics as they enter the reliabilities, levels side by side."""
    statistics = side.some(rows).statistics
    slopes = [step.alpha.abs() * statistics[level] for level, step in enumerate(steps, start=1)]
    return torch.cat(slopes, dim=1) if slopes else statistics[0][:, :0]
