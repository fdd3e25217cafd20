"""Which images stand together in a batch.

Each sampler yields lists of row numbers and is given to ``DataLoader(batch_sampler=...)``. The batches of epoch e
depend on the seed and on e alone, whatever was drawn before: call ``set_epoch(e)`` before each epoch, also on resuming.
``batches`` cuts an epoch to that many, or lets it go on with another pass over the data.

A class with fewer images than are asked of it is drawn from with replacement, any other without, unless a sampler says
otherwise.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

Rows = NDArray[np.int64]


class BatchSampler(Sampler[list[int]]):
    """What all samplers share: rows grouped by class, a stream of random numbers per epoch, a number of batches.

    Args:
        labels: class of each row, any integers.
        batch_size: rows per batch.
        per_class: rows of one class that stand together; divides ``batch_size``.
        seed: of the random numbers, at least 0.

    Raises:
        ValueError: for sizes that do not fit together or that the labels cannot serve.
    """

    def __init__(self, labels: ArrayLike, batch_size: int, *, per_class: int, seed: int) -> None:
        classes = np.asarray(labels)
        if classes.ndim != 1 or not len(classes):
            raise ValueError(f"labels of shape {classes.shape} must be a row of at least one")
        if batch_size < 1 or per_class < 1 or batch_size % per_class:
            raise ValueError(f"batch_size={batch_size} must be a multiple of per_class={per_class}, both at least 1")
        if seed < 0:
            raise ValueError(f"seed={seed} must be at least 0")
        self.batch_size, self.per_class, self.seed, self.epoch = batch_size, per_class, seed, 0
        self.groups = batch_size // per_class
        class_of_row, sizes = np.unique(classes, return_inverse=True, return_counts=True)[1:]
        self.class_of_row: Rows = class_of_row
        self.sizes: Rows = sizes
        self.starts: Rows = np.cumsum(sizes) - sizes
        self.rows: Rows = np.argsort(class_of_row, kind="stable")  # one class after the other

    def set_lengths(self, own: int, batches: int | None) -> None:
        """Fix the batches of a pass (``own``) and of an epoch: ``batches``, or one pass if that is ``None``."""
        if own < 1:
            raise ValueError(f"{len(self.rows)} rows in {len(self.sizes)} classes fill no batch of {self.batch_size}")
        if batches is not None and batches < 1:
            raise ValueError(f"batches={batches} must be at least 1")
        self.pass_length, self.epoch_length = own, own if batches is None else batches

    def need_classes(self, needed: int) -> None:
        """Refuse labels with too few classes for a batch of distinct ones."""
        if len(self.sizes) < needed:
            raise ValueError(
                f"batch_size={self.batch_size} with per_class={self.per_class} needs {needed} classes, "
                f"there are {len(self.sizes)}"
            )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration yields."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.epoch_length

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng([self.seed, self.epoch])
        for batch in islice(self.stream(random), len(self)):
            yield batch.tolist()

    def stream(self, random: np.random.Generator) -> Iterator[Rows]:
        """Batches without end: one pass after another."""
        while True:
            yield from self.one_pass(random)

    @abstractmethod
    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass."""

    def rows_of(self, each: int) -> Rows:
        """All rows of a class."""
        return self.rows[self.starts[each] :][: self.sizes[each]]

    def draw(self, classes: Rows, random: np.random.Generator) -> Rows:
        """``per_class`` rows of each class, ``(len(classes) * per_class,)``."""
        sizes = self.sizes[classes][:, None]
        keys = random.random((len(classes), max(int(sizes.max()), self.per_class)))
        keys[np.arange(keys.shape[1]) >= sizes] = 2.0  # places beyond the class sort last
        distinct = keys.argsort(axis=1)[:, : self.per_class]
        repeated = random.integers(0, sizes, size=distinct.shape)
        chosen = np.where(sizes >= self.per_class, distinct, repeated)
        drawn: Rows = self.rows[self.starts[classes][:, None] + chosen]
        return drawn.ravel()


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
            chosen = random.integers(0, self.sizes[classes], size=(self.groups, self.per_class))
            yield self.rows[self.starts[classes] + chosen].ravel()


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
                yield np.concatenate([self._next_rows(each, pools, random) for each in batch.tolist()])

    def _next_rows(self, each: int, pools: dict[int, Rows], random: np.random.Generator) -> Rows:
        pool = pools.get(each, self.rows[:0])
        if len(pool) < self.per_class:
            own = self.rows_of(each)
            pool = random.choice(own, max(len(own), self.per_class), replace=len(own) < self.per_class)
        pools[each] = pool[self.per_class :]
        return pool[: self.per_class]


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
        chosen = list(islice(super().stream(random), len(self)))
        yield from (chosen[each] for each in random.permutation(len(chosen)))

    def one_pass(self, random: np.random.Generator) -> Iterator[Rows]:
        """The batches of one pass, in the order of its groups."""
        used = len(self.sizes) // self.groups * self.groups
        groups = random.permutation(len(self.sizes))[:used].reshape(-1, self.groups)
        for _ in range(self.repeats):
            for classes in groups:
                yield self.draw(classes, random)


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
            [random.choice(self.rows_of(each), whole, replace=size < whole) for each, size in enumerate(self.sizes)]
        )  # (classes, whole)
        groups = table.reshape(-1, self.rounds, self.per_class).swapaxes(0, 1).reshape(-1, self.per_class)
        for first in range(0, self.pass_length * self.groups, self.groups):
            yield random.permutation(groups[first : first + self.groups]).ravel()


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
        seed: of the random numbers.
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
        for each in random.permutation(len(batches)):
            yield self.draw(np.array(batches[each]), random)

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
    left, pairs = list(counts), []
    while sum(count > 0 for count in left) > 1:
        for first in range(len(left)):
            for second in range(len(left)):
                if first != second and left[first] > 0 and left[second] > 0:
                    left[first] -= 1
                    left[second] -= 1
                    pairs.append((first, second))
    return pairs


SAMPLERS: dict[str, Callable[..., BatchSampler]] = {
    "plain": PlainSampler,
    "m_per_class": MPerClassSampler,
    "balanced": BalancedSampler,
    "grouped": GroupedSampler,
    "cyclic": CyclicSampler,
    "hierarchical": HierarchicalSampler,
}


def build_sampler(
    name: str,
    parameters: Mapping[str, Any],
    *,
    labels: ArrayLike,
    batch_size: int,
    coarse_labels: ArrayLike | None = None,
    seed: int = 0,
    batches: int | None = None,
) -> BatchSampler:
    """The sampler of a recipe.

    Args:
        name: a key of :data:`SAMPLERS`.
        parameters: keyword arguments of that sampler; what is left out keeps its default.
        labels: class of each row.
        batch_size: rows per batch.
        coarse_labels: coarse class of each row, for the sampler that needs them.
        seed: of the random numbers.
        batches: batches per epoch, ``None`` for the sampler's own number.

    Raises:
        ValueError: for an unknown name or parameter, listing the known ones, for a parameter or for coarse labels that
            are missing, and whatever the sampler refuses.
    """
    if name not in SAMPLERS:
        raise ValueError(f"unknown sampler {name!r}; known: {', '.join(sorted(SAMPLERS))}")
    arguments = inspect.signature(SAMPLERS[name]).parameters
    offered: dict[str, Any] = {"labels": labels, "batch_size": batch_size, "seed": seed, "batches": batches}
    if coarse_labels is not None and "coarse_labels" in arguments:
        offered["coarse_labels"] = coarse_labels
    known = arguments.keys() - offered.keys() - {"coarse_labels"}
    if unknown := sorted(parameters.keys() - known):
        message = f"sampler {name!r} has no parameter {unknown[0]!r}; known: {', '.join(sorted(known)) or 'none'}"
        raise ValueError(message)
    given = {**offered, **parameters}
    missing = [key for key, argument in arguments.items() if argument.default is argument.empty and key not in given]
    if missing:
        raise ValueError(f"sampler {name!r} needs {', '.join(missing)}")
    return SAMPLERS[name](**given)
