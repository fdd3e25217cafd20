"""Classes in a fixed cyclic order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from lookalike.samplers.batches import BatchSampler, Rows


class CyclicSampler(BatchSampler):
    """Classes in fixed cyclic order, each until it has given as many rows as the largest class has.

    That number is rounded down to a multiple of ``per_class``; a class with fewer rows is drawn from with replacement.
    Classes are shuffled within a batch; what fills no batch is dropped.

    Source: AVSL, released code, Margin set-up (``per_class=4``, batches of 45 classes).
    """

    def __init__(
        self, labels: ArrayLike, batch_size: int, *, per_class: int, seed: int = 0, batches: int | None = None
    ) -> None:
        super().__init__(labels, batch_size, per_class=per_class, seed=seed)
        self.need_classes(self.groups)
        self.rounds = max(int(self.sizes.max()) // per_class, 1)
        self.set_lengths(len(self.sizes) * self.rounds // self.groups, batches)

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass."""
        whole = self.rounds * self.per_class
        table = np.stack(
            [
                random.choice(self.rows_of(class_index), whole, replace=size < whole)
                for class_index, size in enumerate(self.sizes)
            ]
        )  # (classes, whole)
        groups = table.reshape(-1, self.rounds, self.per_class).swapaxes(0, 1).reshape(-1, self.per_class)
        for first in range(0, self.pass_length * self.groups, self.groups):
            yield random.permutation(groups[first : first + self.groups]).ravel()
