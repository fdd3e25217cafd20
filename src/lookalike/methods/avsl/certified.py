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
from lookalike.methods.avsl.graph import Step, block_distance
from lookalike.methods.avsl.ranked import Ranked
from lookalike.methods.avsl.sides import Side
from lookalike.metrics.definitions import Positives

REFINED = 2**10  # pairs whose bounds are narrowed at once
VALUES = 2**16  # of a level that are evaluated at once, per thread: what the cache of a processor holds in float64
# On a device, whose every step costs a start.
REFINED_DEVICE, VALUES_DEVICE = 2**15, 2**25
CROWDED = 0.5  # share of undecided pairs from which a block is evaluated as a whole


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
                middle, *errors, weights = self._bounds(asked, block, start)
                self._count(asked, block, middle, errors, weights)
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
                middle, *errors, weights = self._bounds(asked, block, start)
                self._count(asked, block, middle, errors, weights)
                if place < count and asked is not asking[place]:
                    self._count(asking[place], asked.block, middle.T.contiguous(), errors[::-1], weights)
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
        """What `block_bounds` gives for queries and a block of the gallery, infinite where a pair takes no part."""
        weights = weight_intervals(asked.block.extremes, block.extremes, self._steps, self._scale)
        middle, *errors = block_bounds(asked.block.flat, block.flat, weights)
        within = (asked.left_out >= start) & (asked.left_out < start + len(block.rows))
        row, column = within.nonzero(as_tuple=True)
        middle[row, asked.left_out[row, column] - start] = torch.inf
        return middle, errors[0], errors[1], weights

    def _count(self, asked: Asked, block: Block, middle: Tensor, errors: Sequence[Tensor], weights: Weights) -> None:
        """Count the items of a block that come before each ranked item."""
        queries, columns, ranked = asked.block.rows, block.rows, asked.ranked
        ends = ranked.ends(errors[0][:, None] + errors[1].max())
        place = torch.searchsorted(ends, middle, right=True, out_int32=True)  # odd inside the bounds of a ranked item
        width = ends.shape[1] + 1
        place += torch.arange(len(queries), dtype=torch.int32, device=place.device)[:, None] * width
        tally = torch.bincount(place.flatten(), minlength=len(queries) * width).view(-1, width)
        number = int(tally[:, 1::2].sum())
        self.undecided += number
        if number > CROWDED * middle.numel():
            shown = middle.isfinite()
            self.exact += int(shown.sum())
            row, column = shown.nonzero(as_tuple=True)
            asked.closer += ranked.counted(self._whole(queries, columns)[shown], row, columns[column])
            return
        asked.closer += tally[:, 0:-1:2].cumsum(dim=1)  # outside of all bounds, and before those of the first, ...
        place -= torch.arange(len(queries), dtype=torch.int32, device=place.device)[:, None] * width
        row, column = place.bitwise_and_(1).nonzero(as_tuple=True)
        for start in range(0, len(row), self._refined):
            at = row[start : start + self._refined], column[start : start + self._refined]
            pairs = queries[at[0]], columns[at[1]]
            values, off = pair_bounds(self._query.units(pairs[0]), self._gallery.units(pairs[1]), weights)
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
