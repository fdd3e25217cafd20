"""How many pictures and classes a data set has in each role, as far as that is known without opening a picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.data.roles import LEFT_OUT, check_usable
from lookalike.data.splits import read_layout
from lookalike.paths import project_root
from lookalike.plan.scales import Dataset
from lookalike.settings.layers import canonical

Sizes = dict[str, tuple[int, int]]  # by role pictures and classes


def role_sizes(dataset: Dataset) -> Sizes:
    """Pictures and classes of each role: as the manifest lists them, as published, or as a user's folder holds them.

    Returns:
        By role; without an entry for a role of which nothing is known yet.

    Raises:
        ValueError: for a user's folder without a manifest that cannot be split, as `read_layout` and `check_usable`.
    """
    manifest = project_root() / dataset.manifest
    if manifest.is_file():
        return _of_manifest(manifest)
    if dataset.own and "folder" in dataset.specification:
        return _of_folder(dataset.name, project_root() / dataset.root, canonical(dataset.specification))
    counts = dataset.specification.get("counts", {})
    return {
        role: (count["images"], count["classes"]) for role, count in counts.items() if {"images", "classes"} <= {*count}
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
    labels = np.sort(np.arange(pictures) % classes)
    extra = max(0, largest - int((labels == 0).sum()))
    labels[pictures - extra :] = 0
    labels = np.sort(labels)
    return Composition(labels, labels % COARSE)


def training_composition(dataset: Dataset) -> Composition | None:
    """How the training pictures of a data set are spread over classes, ``None`` as long as nothing is known.

    Of the manifest, where there is one; else as published: the numbers of pictures and classes, of the pictures of the
    largest class and of the classes of each coarse class, of which training has half.
    """
    manifest = project_root() / dataset.manifest
    if manifest.is_file():
        return _composition_of(manifest)
    sizes = role_sizes(dataset).get("train")
    if sizes is None:
        return None
    composition = equal_classes(*sizes, dataset.specification.get("largest_class", 0))
    if categories := dataset.specification.get("super_categories"):
        halves = [-(-count // 2) for count in categories.values()]
        composition = Composition(composition.labels, np.repeat(np.arange(len(halves)), halves)[composition.labels])
    return composition


@cache
def _composition_of(manifest: Path) -> Composition:
    columns = pd.read_csv(manifest, nrows=0).columns
    frame = pd.read_csv(manifest, usecols=[name for name in columns if name in ("label", "role", "coarse_super")])
    rows = frame[frame["role"] == "train"]
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
    settings = json.loads(specification)
    frame = read_layout(settings, root)
    if "trained_on" not in settings:
        check_usable(frame, name)
    return sizes_of(frame)
