"""Ranks by AVSL's overall distance: bounds for all pairs, the graph for those that the bounds leave open."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import torch
from torch import Tensor

from lookalike.methods.avsl.bounds import (
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
from lookalike.methods.avsl.sides import Side, similar_order, widest_direction

GALLERY = 4096
REFINED = 2**11  # pairs whose bounds are narrowed at once
VALUES = 2**16  # of a level that are evaluated at once, per thread: what the cache of a processor holds in float64
# On a device, whose every step costs a start.
REFINED_DEVICE, VALUES_DEVICE = 2**15, 2**25
CROWDED = 0.5  # share of undecided pairs from which a block is evaluated as a whole


class CertifiedSearch:
    """Ranks of some items in the whole gallery.

    Attributes:
        exact: pairs evaluated over the whole graph so far.
        undecided: pairs that the product left open so far.
    """

    def __init__(self, query: Side, gallery: Side, steps: Sequence[Step], scale: float) -> None:
        self._query, self._gallery, self._steps, self._scale = query, gallery, steps, scale
        on_cpu = query.device.type == "cpu"
        values = VALUES * torch.get_num_threads() if on_cpu else VALUES_DEVICE
        self._pairs, self._refined = max(1, values // query.nodes), REFINED if on_cpu else REFINED_DEVICE
        order = similar_order(gallery, widest_direction(gallery, steps), steps)
        self._place = order.argsort()  # of each item in that order
        self._blocks = []  # of the gallery: columns, as the product takes them, extremes of their statistics
        for columns in torch.split(order, GALLERY):
            images = gallery.some(columns)
            self._blocks.append((columns, flat(images), extremes(images)))
        self.exact = self.undecided = 0

    def ranks(self, queries: Tensor, items: Tensor, counts: Tensor, *, itself: bool) -> Tensor:
        """Ranks ``(b, P)`` float64 of the items of each query, counted from 1; infinite beyond their number.

        Args:
            queries: ``(b,)`` rows of the queries.
            items: ``(b, P)`` columns of the gallery, ascending as far as they count.
            counts: ``(b,)`` how many of a row count, from its start.
            itself: query i is gallery item i and takes no rank.
        """
        counted = torch.arange(items.shape[1], device=items.device) < counts[:, None]
        row, column = counted.nonzero(as_tuple=True)
        distance = torch.full_like(items, torch.inf, dtype=torch.float64)
        distance[row, column] = self._evaluated(queries[row], items[row, column])
        distance, order = distance.sort(dim=1, stable=True)  # items come by index, so equal ones stay so
        ranked = Ranked(distance, items.gather(1, order))
        closer = torch.arange(items.shape[1], device=items.device).expand_as(items).clone()
        closer += self._closer(queries, ranked, items, queries[:, None] if itself else items[:, :0])
        return (closer + 1).double().masked_fill(distance.isinf(), torch.inf)

    def _closer(self, queries: Tensor, ranked: Ranked, items: Tensor, excluded: Tensor) -> Tensor:
        """How many items of the gallery, but for those listed, come before each ranked one, ``(b, P)`` int64."""
        closer = torch.zeros_like(ranked.items)
        left_out = self._place[torch.cat([items, excluded], dim=1)]
        group = self._query.some(queries)
        sides = flat(group), extremes(group)
        start = 0
        for columns, units, statistics in self._blocks:
            row, column = ((left_out >= start) & (left_out < start + len(columns))).nonzero(as_tuple=True)
            weights = weight_intervals(sides[1], statistics, self._steps, self._scale)
            bounds = block_bounds(sides[0], units, weights)
            bounds[0][row, left_out[row, column] - start] = torch.inf
            closer += self._closer_in(queries, columns, ranked, weights, *bounds)
            start += len(columns)
        return closer

    def _closer_in(
        self,
        queries: Tensor,
        columns: Tensor,
        ranked: Ranked,
        weights: Weights,
        middle: Tensor,
        of_query: Tensor,
        of_item: Tensor,
    ) -> Tensor:
        """As `_closer`, among some columns, of which those at infinity take no part."""
        ends = ranked.ends(of_query[:, None] + of_item.max())
        place = torch.searchsorted(ends, middle, right=True, out_int32=True)  # odd inside the bounds of a ranked item
        width = ends.shape[1] + 1
        place += torch.arange(len(queries), dtype=torch.int32, device=place.device)[:, None] * width
        tally = torch.bincount(place.flatten(), minlength=len(queries) * width).view(-1, width)
        closer = tally[:, 0:-1:2].cumsum(dim=1)  # outside of all bounds, and before those of the first, the second, ...
        number = int(tally[:, 1::2].sum())
        self.undecided += number
        if number > CROWDED * middle.numel():
            shown = middle.isfinite()
            self.exact += int(shown.sum())
            row, column = shown.nonzero(as_tuple=True)
            return ranked.counted(self._whole(queries, columns)[shown], row, columns[column])
        place -= torch.arange(len(queries), dtype=torch.int32, device=place.device)[:, None] * width
        row, column = place.bitwise_and_(1).nonzero(as_tuple=True)
        for start in range(0, len(row), self._refined):
            at = row[start : start + self._refined], column[start : start + self._refined]
            pairs = self._query.some(queries[at[0]]), self._gallery.some(columns[at[1]])
            values, off = pair_bounds(*pairs, weights)
            still = ranked.within(values - off, values + off, at[0])
            self.exact += int(still.sum())
            values[still] = self._evaluated(queries[at[0][still]], columns[at[1][still]], counted=False)
            closer += ranked.counted(values, at[0], columns[at[1]])
        return closer

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
