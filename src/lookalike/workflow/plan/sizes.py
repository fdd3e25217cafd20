"""Numbers of pictures and classes of a data set by role, as far as they are known without opening a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.base.paths import project_root
from lookalike.workflow.data.roles import LEFT_OUT, check_usable
from lookalike.workflow.data.splits import read_layout
from lookalike.workflow.plan.scales import Dataset
from lookalike.workflow.settings import datasets
from lookalike.workflow.settings.datasets import Numbers

Sizes = dict[str, tuple[int, int]]  # by role pictures and classes
SWAPPED = {"train": "test", "test": "train"}  # where the second half of the classes trains


def role_sizes(dataset: Dataset, half: str = "") -> Sizes:
    """Pictures and classes of each role: as the manifest lists them, as published, or as a user's folder holds them.

    Args:
        dataset: whose roles they are.
        half: of the classes that trains; of the second one training and test classes are in each other's place.

    Returns:
        By role; without an entry for a role of which nothing is known yet.

    Raises:
        ValueError: for a user's folder without a manifest that cannot be split, as `read_layout` and `check_usable`.
    """
    if half:
        return {SWAPPED.get(role, role): size for role, size in role_sizes(dataset).items()}
    manifest = project_root() / dataset.manifest
    if manifest.is_file():
        return _of_manifest(manifest)
    about = dataset.about
    if dataset.own and about.folder:
        return _of_folder(dataset.name, project_root() / dataset.root, about.model_dump_json(exclude_unset=True))
    counts: dict[str, Numbers | None] = dict(about.counts) if about.counts else {}
    return {
        role: (count.images, count.classes)
        for role, count in counts.items()
        if count and count.images and count.classes
    }


@dataclass(frozen=True, eq=False)
class Composition:
    """Training pictures as samplers see them.

    Attributes:
        labels: ``(N,)`` int64, classes counted from 0.
        coarse: ``(N,)`` int64, coarse classes; of unknown ones twelve of about the same size.
    """

    labels: NDArray[np.int64]
    coarse: NDArray[np.int64]

    def first_classes(self, share: float) -> Composition:
        """Only this share of the classes."""
        kept = self.labels < round(share * (self.labels.max() + 1))
        return Composition(self.labels[kept], self.coarse[kept])


COARSE = 12  # as many as Stanford Online Products has


def equal_classes(pictures: int, classes: int, largest: int = 0) -> Composition:
    """Classes of the same size, as far as they can be; one of them of ``largest`` pictures, if that is more."""
    labels = np.arange(pictures) % classes
    others = np.flatnonzero(labels)
    extra = max(0, largest - (pictures - len(others)))
    labels[others[len(others) - extra :]] = 0  # the last of each class in turn, so that none is emptied before others
    labels = np.sort(labels)
    return Composition(labels, labels % COARSE)


def training_composition(dataset: Dataset, half: str = "") -> Composition | None:
    """Spread of a data set's training pictures over classes, ``None`` as long as nothing is known.

    Of the manifest, where there is one; else as published: the numbers of pictures and classes, of the pictures of the
    largest class and of the classes of each coarse class, of which training has half.

    Args:
        dataset: whose pictures they are.
        half: of the classes, that trains.
    """
    manifest = project_root() / dataset.manifest
    if manifest.is_file():
        return _composition_of(manifest, SWAPPED["train"] if half else "train")
    sizes = role_sizes(dataset, half).get("train")
    if sizes is None:
        return None
    composition = equal_classes(*sizes, dataset.about.largest_class or 0)
    if categories := dataset.about.super_categories:
        halves = [-(-count // 2) for count in categories.values()]
        composition = Composition(composition.labels, np.repeat(np.arange(len(halves)), halves)[composition.labels])
    return composition


@cache
def _composition_of(manifest: Path, role: str) -> Composition:
    columns = pd.read_csv(manifest, nrows=0).columns
    frame = pd.read_csv(manifest, usecols=[name for name in columns if name in ("label", "role", "coarse_super")])
    rows = frame[frame["role"] == role]
    labels = np.unique(rows["label"], return_inverse=True)[1].astype(np.int64)
    coarse = rows["coarse_super"].to_numpy(np.int64) if "coarse_super" in rows else labels % COARSE
    return Composition(labels, coarse)


def sizes_of(frame: pd.DataFrame) -> Sizes:
    """Pictures and classes of each role of a split."""
    roles = frame[frame["role"] != LEFT_OUT].groupby("role")
    return {str(role): (len(rows), rows["label"].nunique()) for role, rows in roles}


@cache
def _of_manifest(manifest: Path) -> Sizes:
    return sizes_of(pd.read_csv(manifest, usecols=["label", "role"]))  # 120,000 rows in 0.1 s, which planning waits for


@cache
def _of_folder(name: str, root: Path, specification: str) -> Sizes:
    about = datasets.Dataset.model_validate_json(specification)
    frame = read_layout(about, root)
    if not about.trained_on:
        check_usable(frame, name)
    return sizes_of(frame)
