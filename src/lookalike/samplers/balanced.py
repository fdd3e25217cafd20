"""Rounds of distinct classes that give all their rows before any again."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from lookalike.samplers.batches import BatchSampler, Rows


class BalancedSampler(BatchSampler):
    """Rounds of distinct classes, each giving rows that it has not given before while enough are left.

    A class with fewer than ``per_class`` rows left starts over with all of its rows. A pass has as many batches as the
    rows would fill, rounded up to whole rounds.

    Source: Contextual, released code, 224 px set-up; ``classes_per_round`` is 96 there.
    """

    def __init__(
        self,
        labels: ArrayLike,
        batch_size: int,
        *,
        per_class: int,
        classes_per_round: int = 96,
        seed: int = 0,
        batches: int | None = None,
    ) -> None:
        super().__init__(labels, batch_size, per_class=per_class, seed=seed)
        self.need_classes(self.groups)
        self.batches_per_round = max(min(classes_per_round, len(self.sizes)) // self.groups, 1)
        rounds = max(math.ceil(len(self.rows) // batch_size / self.batches_per_round), 1)
        self.set_lengths(rounds * self.batches_per_round, batches)

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass."""
        pools: dict[int, Rows] = {}
        for _ in range(self.pass_length // self.batches_per_round):
            classes = random.permutation(len(self.sizes))[: self.batches_per_round * self.groups]
            for batch in classes.reshape(-1, self.groups):
                yield np.concatenate([self._next_rows(class_index, pools, random) for class_index in batch.tolist()])

    def _next_rows(self, class_index: int, pools: dict[int, Rows], random: np.random.Generator) -> Rows:
        pool = pools.get(class_index, self.rows[:0])
        if len(pool) < self.per_class:
            rows = self.rows_of(class_index)
            pool = random.choice(rows, max(len(rows), self.per_class), replace=len(rows) < self.per_class)
        pools[class_index] = pool[self.per_class :]
        return pool[: self.per_class]
