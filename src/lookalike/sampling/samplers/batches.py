"""Batches of rows: classes and epochs that all samplers share, and batches drawn without regard to each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

Rows = NDArray[np.int64]


class BatchSampler(Sampler[list[int]]):
    """Common base of all samplers: rows grouped by class, random numbers per epoch, a number of batches.

    Args:
        labels: class of each row, any integers.
        batch_size: rows per batch.
        per_class: rows of one class that stand together; divides ``batch_size``.
        seed: seed of the random numbers, at least 0.

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

    def set_lengths(self, per_pass: int, batches: int | None) -> None:
        """Fix the batches of a pass and of an epoch: ``batches``, or one pass if that is ``None``."""
        if per_pass < 1:
            raise ValueError(f"{len(self.rows)} rows in {len(self.sizes)} classes fill no batch of {self.batch_size}")
        if batches is not None and batches < 1:
            raise ValueError(f"batches={batches} must be at least 1")
        self.pass_length, self.epoch_length = per_pass, per_pass if batches is None else batches

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

    def rows_of(self, class_index: int) -> Rows:
        """All rows of a class."""
        return self.rows[self.starts[class_index] :][: self.sizes[class_index]]

    def draw(self, classes: Rows, random: np.random.Generator) -> Rows:
        """``per_class`` rows of each class, ``(len(classes) * per_class,)``."""
        sizes = self.sizes[classes][:, None]
        keys = random.random((len(classes), max(int(sizes.max()), self.per_class)))
        keys[np.arange(keys.shape[1]) >= sizes] = 2.0  # positions beyond the class sort last
        distinct = keys.argsort(axis=1)[:, : self.per_class]
        repeated = random.integers(0, sizes, size=distinct.shape)
        positions = np.where(sizes >= self.per_class, distinct, repeated)
        drawn: Rows = self.rows[self.starts[classes][:, None] + positions]
        return drawn.ravel()


class PlainSampler(BatchSampler):
    """All rows shuffled and cut; rows that fill no batch are dropped."""

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
