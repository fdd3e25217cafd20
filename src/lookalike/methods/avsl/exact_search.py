"""Ranks by AVSL's overall distance: bounds for all pairs, the graph for those that the bounds leave open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import torch
from torch import Tensor

from lookalike.methods.avsl.bounds import (
    Flat,
    Weights,
    block_bounds,
    exact_distance,
    extremes,
    flat,
    pair_bounds,
    weight_intervals,
)
from lookalike.methods.avsl.graph import Images, Step, block_distance, graph_images
from lookalike.metrics.definitions import Positives
from lookalike.metrics.ranking import count_above

COMPARED = 2**16  # pairs compared with ranked items at once
SOME = 4096  # images that are turned into float64 at once
REFINED = 2**7  # pairs whose bounds are narrowed at once
VALUES = 2**16  # of a level that are evaluated at once, per thread: what the cache of a processor holds in float64
# On a device, whose every step costs a start.
REFINED_DEVICE, VALUES_DEVICE = 2**15, 2**25
CROWDED = 0.5  # share of undecided pairs from which a block is evaluated as a whole


class Ranked(NamedTuple):
    """Items whose ranks are asked for, nearest first: distances ``(b, P)``, infinite beyond their number, columns."""

    distance: Tensor
    items: Tensor

    def before(self, distance: Tensor, columns: Tensor) -> Tensor:
        """Whether others come before the ranked items: closer, or as close and of a lower index."""
        ranked, items = self.distance[:, None, :], self.items[:, None, :]
        return (distance < ranked) | ((distance == ranked) & (columns < items))

    def counted(self, distance: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Number ``(b, P)`` of others before each ranked item; each of n others ``(n,)`` is of the query of a row."""
        counts = torch.zeros_like(self.items)
        for start in range(0, len(rows), COMPARED):
            part = slice(start, start + COMPARED)
            ranked = Ranked(self.distance[rows[part]], self.items[rows[part]])
            first = ranked.before(distance[part, None, None], columns[part, None, None])[:, 0]
            counts.index_add_(0, rows[part], first.long())
        return counts

    def within(self, low: Tensor, high: Tensor, rows: Tensor) -> Tensor:
        """Whether the bounds ``(n,)`` of pairs hold the distance of an item that is ranked for their row."""
        ranked = self.distance[rows]
        return ((low[:, None] <= ranked) & (ranked <= high[:, None])).any(dim=1)

    def closeness(self, error: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds ``(b, P)`` float32 of minus the distances, farthest first.

        Beyond the number of a query's items its farthest one is repeated.
        """
        distance = self.distance.minimum(self.distance.masked_fill(self.distance.isinf(), -torch.inf).amax(1, True))
        wide = error + 2.0**-22 * (distance.abs() + error)  # both ends are rounded
        return (-distance - wide).flip(1).float(), (-distance + wide).flip(1).float()


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
        sides = zip(self._embeddings, self._lengths, strict=True)
        return [_taken(each, index).div_(_rows(lengths, index)) for each, lengths in sides]


def _lengths(embeddings: Tensor) -> Tensor:
    """Divisors ``(N, 1)`` float64 of the vectors ``(N, r)``, those of `torch.nn.functional.normalize`."""
    parts = [torch.linalg.vector_norm(some.double(), dim=1, keepdim=True) for some in torch.split(embeddings, SOME)]
    return torch.cat(parts).clamp_(min=1e-12)


def _taken(values: Tensor, index: Tensor | slice) -> Tensor:
    return _rows(values, index).to(torch.float64, copy=True)


def _rows(values: Tensor, index: Tensor | slice) -> Tensor:
    """Rows, by index_select, which is several times as fast as indexing with a tensor."""
    return values[index] if isinstance(index, slice) else values.index_select(0, index)


def similar_order(side: Side, direction: Tensor, steps: Sequence[Step]) -> Tensor:
    """Rows ``(N,)`` of all images, those of similar statistics together: by their projections on a direction.

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


class Block(NamedTuple):
    """Images that are bounded together: their indices, themselves as a product takes them, extremes of statistics."""

    rows: Tensor
    flat: Flat
    extremes: list[Tensor]


@dataclass
class Asked:
    """Queries of a block, the items whose ranks are asked for, and how many items come before each so far.

    Attributes:
        block: b queries.
        ranked: ``(b, P)`` items, nearest first.
        closer: ``(b, P)`` int64.
        left_out: ``(b, P + 1)`` places of the ranked items, and where it takes no rank of the query itself, among all
            blocks of the gallery.
    """

    block: Block
    ranked: Ranked
    closer: Tensor
    left_out: Tensor

    @property
    def ranks(self) -> Tensor:
        """``(b, P)`` float64, counted from 1; infinite beyond the number of items."""
        return (self.closer + 1).double().masked_fill(self.ranked.distance.isinf(), torch.inf)


class CertifiedSearch:
    """Ranks of the positives of some queries in the whole gallery.

    Attributes:
        exact: pairs evaluated over the whole graph so far.
        undecided: pairs that the product left open so far.
    """

    def __init__(
        self,
        query: Side,
        gallery: Side,
        steps: Sequence[Step],
        scale: float,
        positives: Positives,
        blocks: Sequence[Tensor],
    ) -> None:
        """Prepare the gallery.

        Args:
            query: Q images.
            gallery: G images.
            steps: levels above the lowest, float64.
            scale: factor of the sigmoid's argument.
            positives: of the queries.
            blocks: indices of the gallery's images, those together that are bounded together.
        """
        self._query, self._gallery, self._steps, self._scale = query, gallery, steps, scale
        self._positives = positives
        on_cpu = query.device.type == "cpu"
        values = VALUES * torch.get_num_threads() if on_cpu else VALUES_DEVICE
        self._pairs, self._refined = max(1, values // query.nodes), REFINED if on_cpu else REFINED_DEVICE
        self._place = torch.cat([*blocks]).argsort()  # of each item among all blocks
        self._blocks = [_block(gallery, index) for index in blocks]
        self.exact = self.undecided = 0

    def ranks(self, groups: Sequence[Tensor], *, itself: bool) -> Iterator[Tensor]:
        """Ranks ``(b, P)`` float64 of the positives of each query, as `Positives.of` lists them but by distance.

        Args:
            groups: rows ``(b,)`` of queries, each of which has a positive, that are bounded together.
            itself: query i is gallery item i and takes no rank.
        """
        for queries in groups:
            asked = self._asked(_block(self._query, queries), itself)
            start = 0
            for block in self._blocks:
                closeness, *errors, weights = self._bounds(asked, block, start)
                self._count(asked, block, closeness, errors, weights)
                start += len(block.rows)
            yield asked.ranks

    def mutual_ranks(self, count: int) -> Iterator[Tensor]:
        """As `ranks`, of the images of the first blocks in a gallery of which they are part, by half of the products.

        A product of two blocks bounds the distances of both. The others' images, without a positive, are no queries.

        Args:
            count: how many blocks ask.
        """
        asking = [self._asked(block, True) for block in self._blocks[:count]]
        start = 0
        for place, block in enumerate(self._blocks):
            for asked in asking[: place + 1]:
                closeness, *errors, weights = self._bounds(asked, block, start)
                self._count(asked, block, closeness, errors, weights)
                if place < count and asked is not asking[place]:
                    self._count(asking[place], asked.block, closeness.T.contiguous(), errors[::-1], weights)
            start += len(block.rows)
        yield from (asked.ranks for asked in asking)

    def _asked(self, block: Block, itself: bool) -> Asked:
        queries = block.rows
        items, counts = self._positives.of(queries), self._positives.counts[queries]
        counted = torch.arange(items.shape[1], device=items.device) < counts[:, None]
        row, column = counted.nonzero(as_tuple=True)
        distance = torch.full_like(items, torch.inf, dtype=torch.float64)
        distance[row, column] = self._evaluated(queries[row], items[row, column])
        distance, order = distance.sort(dim=1, stable=True)  # items come by index, so equal ones stay so
        closer = torch.arange(items.shape[1], device=items.device).expand_as(items).clone()
        excluded = torch.cat([items, queries[:, None]], dim=1) if itself else items
        return Asked(block, Ranked(distance, items.gather(1, order)), closer, self._place[excluded])

    def _bounds(self, asked: Asked, block: Block, start: int) -> tuple[Tensor, Tensor, Tensor, Weights]:
        """Bounds by `block_bounds` of a block of the gallery, as minus the distance, infinite for pairs left out."""
        weights = weight_intervals(asked.block.extremes, block.extremes, self._steps, self._scale)
        middle, *errors = block_bounds(asked.block.flat, block.flat, weights)
        within = (asked.left_out >= start) & (asked.left_out < start + len(block.rows))
        row, column = within.nonzero(as_tuple=True)
        middle[row, asked.left_out[row, column] - start] = torch.inf
        return middle.neg_(), errors[0], errors[1], weights

    def _count(self, asked: Asked, block: Block, closeness: Tensor, errors: Sequence[Tensor], weights: Weights) -> None:
        """Count the items of a block that come before each ranked item."""
        queries, columns, ranked = asked.block.rows, block.rows, asked.ranked
        low, high = ranked.closeness(errors[0][:, None] + errors[1].max())
        closer, row, column = count_above(closeness, closeness >= low[:, :1], low, high)
        self.undecided += len(row)
        if len(row) > CROWDED * closeness.numel():
            shown = closeness.isfinite()
            self.exact += int(shown.sum())
            row, column = shown.nonzero(as_tuple=True)
            asked.closer += ranked.counted(self._whole(queries, columns)[shown], row, columns[column])
            return
        asked.closer += closer.flip(1)  # outside of all bounds, and closer than the item of each
        for start in range(0, len(row), self._refined):
            at = row[start : start + self._refined], column[start : start + self._refined]
            pairs = queries[at[0]], columns[at[1]]
            units = _rows(asked.block.flat.units, at[0]), _rows(block.flat.units, at[1])
            values, off = pair_bounds(*units, weights)
            still = ranked.within(values - off, values + off, at[0])
            self.exact += int(still.sum())
            values[still] = self._evaluated(pairs[0][still], pairs[1][still], counted=False)
            asked.closer += ranked.counted(values, at[0], pairs[1])

    def _evaluated(self, queries: Tensor, items: Tensor, *, counted: bool = True) -> Tensor:
        """Exact distances ``(n,)`` of pairs."""
        self.exact += counted * len(queries)
        found = torch.empty(len(queries), dtype=torch.float64, device=queries.device)
        for start in range(0, len(queries), self._pairs):
            pairs = slice(start, start + self._pairs)
            sides = self._query.some(queries[pairs]), self._gallery.some(items[pairs])
            found[pairs] = exact_distance(*sides, self._steps, self._scale)
        return found

    def _whole(self, queries: Tensor, columns: Tensor) -> Tensor:
        """Exact distances of all pairs of a block."""
        group, others = self._query.some(queries), self._gallery.some(columns)
        found = group.units[0].new_empty(group.count, others.count)
        side = max(1, isqrt(self._pairs))
        for top in range(0, group.count, side):
            for left in range(0, others.count, side):
                rows, items = slice(top, top + side), slice(left, left + side)
                found[rows, items] = block_distance(group.rows(rows), others.rows(items), self._steps, self._scale)
        return found


def _block(side: Side, index: Tensor) -> Block:
    images = side.some(index)
    return Block(index, flat(images), extremes(images))
