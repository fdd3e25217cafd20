"""Batches drawn without regard to each other: rows alone, or classes and their rows with replacement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from lookalike.samplers.batches import BatchSampler, Rows


class PlainSampler(BatchSampler):
    """All rows shuffled and cut; what fills no batch is dropped."""

    def __init__(self, labels: ArrayLike, batch_size: int, *, seed: int = 0, batches: int | None = None) -> None:
        super().__init__(labels, batch_size, per_class=1, seed=seed)
        self.set_lengths(len(self.rows) // batch_size, batches)

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass."""
        order = random.permutation(len(self.rows))
        yield from order[: self.pass_length * self.batch_size].reshape(-1, self.batch_size)


class MPerClassSampler(BatchSampler):
    """Classes drawn uniformly with replacement, then rows of each with replacement.

    So a batch may hold a class twice and a row twice. A pass has as many batches as the rows would fill.

    Source: DIML, released code.
    """

    def __init__(
        self, labels: ArrayLike, batch_size: int, *, per_class: int, seed: int = 0, batches: int | None = None
    ) -> None:
        super().__init__(labels, batch_size, per_class=per_class, seed=seed)
        self.set_lengths(max(len(self.rows) // batch_size, 1), batches)

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass."""
        for _ in range(self.pass_length):
            classes = random.integers(len(self.sizes), size=(self.groups, 1))
            positions = random.integers(0, self.sizes[classes], size=(self.groups, self.per_class))
            yield self.rows[self.starts[classes] + positions].ravel()
