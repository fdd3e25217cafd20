"""mini-iNaturalist-2021: ``train_mini/<id>_<kingdom>_<phylum>_<class>_..._<species>/``.

The contextual paper shuffled the classes of each super-category without a seed, so only its authors' lists
``iNaturalist_train.txt`` and ``iNaturalist_test.txt`` define its split. Where they lie in the root they are used; else
the same rule is followed with a seed: numbers are not comparable then. Each row, and so the manifest, says in ``split``
which of the two it was, ``authors`` or ``own``; ``attrs["split"]`` says it with the seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from lookalike.workflow.data.junk import is_image
from lookalike.workflow.data.readers.annotations import base_folder, read_comma_rows
from lookalike.workflow.data.readers.folder import folders
from lookalike.workflow.settings.datasets import Dataset

TOP = "train_mini"
# A class belongs to the narrowest of these taxa that its folder's name holds. Super-categories count from 0 by name.
SUPER_CATEGORIES = {
    "Amphibia": "Amphibians",
    "Animalia": "Animalia",
    "Arachnida": "Arachnids",
    "Aves": "Birds",
    "Fungi": "Fungi",
    "Insecta": "Insects",
    "Mammalia": "Mammals",
    "Mollusca": "Mollusks",
    "Plantae": "Plants",
    "Actinopterygii": "Ray-finned Fishes",
    "Reptilia": "Reptiles",
}
_SORTED = sorted(SUPER_CATEGORIES.values())


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per picture; ``coarse_super`` is the super-category, 0 to 10, ``split`` is ``authors`` or ``own``.

    Raises:
        ValueError: if folders or lists are missing or broken, a class is empty or in both lists, or the classes of a
            super-category are not as many as stated.
    """
    if (root / "iNaturalist_train.txt").is_file():
        frame, split = _listed(root).assign(split="authors"), "authors' lists"
    else:
        seed = specification.split_seed or 0
        frame, split = _own(root, seed).assign(split="own"), f"own split, seed {seed}"
    counts = frame.drop_duplicates("label")["coarse_super"].map(dict(enumerate(_SORTED))).value_counts().to_dict()
    for name, expected in specification.super_categories.items():
        if counts.get(name, 0) != expected:
            raise ValueError(f"super-category {name}: {expected} classes expected, {counts.get(name, 0)} found")
    frame.attrs["split"] = split
    return frame


def _listed(root: Path) -> pd.DataFrame:
    """Rows ``<folder>/<image>,<super-category>,<class>`` of the authors' lists."""
    halves = []
    for role in ("train", "test"):
        path = root / f"iNaturalist_{role}.txt"
        if not path.is_file():
            raise ValueError(f"{path} does not exist, though the other half of the split does")
        halves.append(read_comma_rows(path, {"path": str, "coarse_super": int, "label": int}).assign(role=role))
    frame = pd.concat(halves, ignore_index=True)
    shared = set(halves[0]["label"]) & set(halves[1]["label"])
    if shared:
        raise ValueError(f"{root}: class {min(shared)} is in both of the authors' lists")
    folder = frame["path"].str.removeprefix(f"{TOP}/").str.split("/").str[0]
    return frame.assign(path=f"{TOP}/" + frame["path"].str.removeprefix(f"{TOP}/"), class_name=folder)


def _own(root: Path, seed: int) -> pd.DataFrame:
    """Of each super-category in the order of the names, the first half of the shuffled classes tests, the rest trains.

    Source: contextual paper, released split code. Differs: the generator has a seed.
    """
    rows = []
    for folder in folders(base_folder(root, (TOP,), ".")):
        images = sorted(entry.name for entry in folder.iterdir() if is_image(entry.name))
        if not images:
            raise ValueError(f"class folder {folder} holds no image")
        label, super_category = _class_of(folder)
        rows += [(f"{TOP}/{folder.name}/{image}", label, super_category, folder.name) for image in images]
    frame = pd.DataFrame(rows, columns=["path", "label", "coarse_super", "class_name"])
    generator = np.random.default_rng(seed)
    testing: set[int] = set()
    for _, members in frame.groupby("coarse_super", sort=True):
        shuffled = generator.permutation(np.unique(members["label"]))
        testing.update(shuffled[: len(shuffled) // 2].tolist())
    return frame.assign(role=np.where(frame["label"].isin(list(testing)), "test", "train"))


def _class_of(folder: Path) -> tuple[int, int]:
    """Class id and super-category of a class folder."""
    number, *taxa = folder.name.split("_")
    names = [SUPER_CATEGORIES[taxon] for taxon in reversed(taxa[:3]) if taxon in SUPER_CATEGORIES]
    if not number.isdigit() or not names:
        raise ValueError(f"{folder} is not named <id>_<kingdom>_<phylum>_<class>_... with a known kingdom")
    return int(number), _SORTED.index(names[0])
