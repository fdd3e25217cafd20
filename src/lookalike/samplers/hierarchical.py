"""Batches of two coarse classes, half and half."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.samplers.batches import BatchSampler, Rows


class HierarchicalSampler(BatchSampler):
    """Batches of two halves, each half from the classes of one coarse class.

    A coarse class makes half-batches in proportion to its rows, going through its shuffled classes in a cycle. Coarse
    classes give half-batches to each other in turns, see :func:`pair_in_turns`. Batches are shuffled at the end.

    Source: Contextual, Appendix H.3 and released code: ``half_batches`` is 1320 on SOP and 1400 on mini-iNaturalist,
    where 576 batches result.

    Args:
        labels: class of each row.
        batch_size: rows per batch.
        coarse_labels: coarse class of each row, the same for all rows of a class.
        per_class: rows of one class that stand together; divides half of ``batch_size``.
        half_batches: number of half-batches before each coarse class's share of them is rounded.
        seed: seed of the random numbers.
        batches: batches per epoch.

    Raises:
        ValueError: also for coarse labels that do not fit, fewer than two of them, or a coarse class with too few
            classes for half a batch.
    """

    def __init__(
        self,
        labels: ArrayLike,
        batch_size: int,
        *,
        coarse_labels: ArrayLike,
        per_class: int,
        half_batches: int = 1320,
        seed: int = 0,
        batches: int | None = None,
    ) -> None:
        super().__init__(labels, batch_size, per_class=per_class, seed=seed)
        if self.groups % 2:
            raise ValueError(f"half of batch_size={batch_size} must be a multiple of per_class={per_class}")
        self.half = self.groups // 2
        self.classes_of_coarse = self._coarse_classes(np.asarray(coarse_labels))
        shares = [self.sizes[classes].sum() / len(self.rows) for classes in self.classes_of_coarse]
        self.pairs = pair_in_turns([round(float(share) * half_batches) for share in shares])
        self.set_lengths(len(self.pairs), batches)

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass."""
        cycles = [cycle(random.permutation(classes).tolist()) for classes in self.classes_of_coarse]
        batches = [
            [*islice(cycles[first], self.half), *islice(cycles[second], self.half)] for first, second in self.pairs
        ]
        for index in random.permutation(len(batches)):
            yield self.draw(np.array(batches[index]), random)

    def _coarse_classes(self, coarse: NDArray[Any]) -> list[Rows]:
        """The classes of each coarse class."""
        if coarse.shape != self.rows.shape:
            raise ValueError(f"coarse_labels {coarse.shape} must be as long as labels {self.rows.shape}")
        coarse_of_class = coarse[self.rows[self.starts]]
        if (coarse_of_class[self.class_of_row] != coarse).any():
            raise ValueError("coarse_labels differ within a class of labels")
        names = np.unique(coarse_of_class)
        if len(names) < 2:
            raise ValueError(f"coarse_labels name {len(names)} coarse class, at least 2 are needed")
        classes_of_coarse = [np.flatnonzero(coarse_of_class == name) for name in names]
        for name, classes in zip(names, classes_of_coarse, strict=True):
            if len(classes) < self.half:
                raise ValueError(f"coarse class {name} has {len(classes)} classes, half a batch needs {self.half}")
        return classes_of_coarse


def pair_in_turns(counts: list[int]) -> list[tuple[int, int]]:
    """Pairs of owners of half-batches.

    The first owner gives one half-batch to each other owner in turn, wherever both have some, then the second does so,
    and all of them again until fewer than two owners have any.

    Args:
        counts: half-batches of each owner.

    Returns:
        Positions in ``counts``, two different ones per pair.
    """
    remaining, pairs = list(counts), []
    while sum(count > 0 for count in remaining) > 1:
        for first in range(len(remaining)):
            for second in range(len(remaining)):
                if first != second and remaining[first] > 0 and remaining[second] > 0:
                    remaining[first] -= 1
                    remaining[second] -= 1
                    pairs.append((first, second))
    return pairs
