"""Batches of chosen classes: in rounds, in a cycle, in groups that come back, and in two coarse classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.sampling.samplers.batches import BatchSampler, Rows


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


class GroupedSampler(BatchSampler):
    """Classes shuffled and cut into groups of one batch each; the same groups come back with other rows.

    After ``repeats`` rounds of all groups a pass ends and classes are grouped anew. Batches are shuffled at the end.

    Source: Contextual, released code, 256 px set-up: 5 repeats on CUB, 10 on Cars, 600 batches on In-Shop.
    Differs: the paper's text, random classes in each batch, is ``repeats=1`` with a number of ``batches``.
    """

    def __init__(
        self,
        labels: ArrayLike,
        batch_size: int,
        *,
        per_class: int,
        repeats: int = 5,
        seed: int = 0,
        batches: int | None = None,
    ) -> None:
        super().__init__(labels, batch_size, per_class=per_class, seed=seed)
        if repeats < 1:
            raise ValueError(f"repeats={repeats} must be at least 1")
        self.need_classes(self.groups)
        self.repeats = repeats
        self.set_lengths(len(self.sizes) // self.groups * repeats, batches)

    def stream(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of the epoch: chosen in the order of the groups, then shuffled."""
        batches = list(islice(super().stream(random), len(self)))
        yield from (batches[index] for index in random.permutation(len(batches)))

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass, in the order of its groups."""
        used = len(self.sizes) // self.groups * self.groups
        groups = random.permutation(len(self.sizes))[:used].reshape(-1, self.groups)
        for _ in range(self.repeats):
            for classes in groups:
                yield self.draw(classes, random)


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
