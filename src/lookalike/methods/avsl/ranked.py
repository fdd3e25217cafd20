"""Items whose ranks are asked for, and how many others come before them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

COMPARED = 2**16  # pairs compared with ranked items at once


class Ranked(NamedTuple):
    """Items whose ranks are asked for, nearest first: distances ``(b, P)``, infinite beyond their number, columns."""

    distance: Tensor
    items: Tensor

    def before(self, distance: Tensor, columns: Tensor) -> Tensor:
        """Whether others come before the ranked items: closer, or as close and of a lower index."""
        ranked, items = self.distance[:, None, :], self.items[:, None, :]
        return (distance < ranked) | ((distance == ranked) & (columns < items))

    def counted(self, distance: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """How many of n others ``(n,)``, each of the query of a row, come before each ranked item, ``(b, P)``."""
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

    def ends(self, error: Tensor) -> Tensor:
        """Where the bounds of the ranked items begin and end, ``(b, 2 P)`` float32, ascending.

        Bounds that overlap are cut where the earlier ones end.
        """
        wide = error + 2.0**-22 * (self.distance.nan_to_num(posinf=0.0).abs() + error)  # both ends are rounded
        high = (self.distance + wide).cummax(dim=1).values
        low = torch.maximum(self.distance - wide, torch.cat([high[:, :1] - torch.inf, high[:, :-1]], dim=1))
        return torch.stack([low, high], dim=2).flatten(1).float()
