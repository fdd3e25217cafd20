"""Split of a folder into classes that train and classes held out to decide, by a fixed rule."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from lookalike.base.checks import require_utf8
from lookalike.base.text import counted
from lookalike.workflow.data.manifest import check_listable
from lookalike.workflow.data.readers import folder as layout
from lookalike.workflow.settings.datasets import Dataset

FEWEST_CLASSES = 5  # on either side: to learn from, and to decide by
FEWEST_PICTURES = 4  # of a class: samplers draw up to five, some twice
SEED = 0  # of the split, and of the pictures that are kept
HELD_OUT = ["test", "query"]
TOLD = 3  # classes that are left out, by name


@dataclass(frozen=True)
class Classes:
    """A folder's pictures that take part.

    Attributes:
        folder: whose pictures they are.
        rows: a row per picture: ``path`` below the folder, ``class_name`` and ``role``.
        by_folder: whether folders ``train`` and ``test`` (or ``query`` and ``gallery``) say the roles.
        too_small: folders of classes that are left out, having fewer than `FEWEST_PICTURES` pictures.
        remarks: sentences on names that look alike.
        most: pictures of a class that are kept, ``None`` for all.
    """

    folder: Path
    rows: pd.DataFrame
    by_folder: bool
    too_small: tuple[str, ...]
    remarks: tuple[str, ...]
    most: int | None

    def names(self, *roles: str) -> list[str]:
        """Classes of some roles, by name."""
        return sorted(self.rows.loc[self.rows["role"].isin(roles), "class_name"].unique())

    @property
    def rule(self) -> str:
        """The rule by which the classes were split, in a sentence."""
        learned, held = len(self.names("train")), len(self.names(*HELD_OUT))
        if self.by_folder:
            how = "as its folders say"
        else:
            how = f"half of the {learned + held}, drawn once by a fixed rule (numpy's generator, seed {SEED})"
        return f"{counted(held, 'class')} are held out and decide, {counted(learned, 'class')} train; {how}."

    @property
    def notes(self) -> list[str]:
        """Remarks on names, and on the classes and pictures that were left out, a sentence each."""
        said = [f"Of the names {remark}." for remark in self.remarks]
        if self.too_small:
            more = [f"{len(self.too_small) - TOLD} more"] if len(self.too_small) > TOLD else []
            listed = ", ".join([*self.too_small[:TOLD], *more])
            said.append(f"Left out, with fewer than {FEWEST_PICTURES} pictures: {listed}.")
        if self.most is not None:
            said.append(f"Of each class at most {self.most} pictures take part, drawn with seed {SEED}.")
        return said

    def specification(self, links: Path) -> dict[str, Any]:
        """The data set as an overlay names it.

        Args:
            links: folder for links to the kept pictures, which is made where not all of a class are.
        """
        known: dict[str, Any] = {"layout": "folder", "duplicates": "drop", "broken": "skip"}
        known |= {"self_match": "query" not in set(self.rows["role"])}
        if not self.by_folder:
            known |= {"classes": {role: self.names(role) for role in ("train", "test")}}
        if self.most is None:
            ignored = {"ignore": [glob.escape(name) for name in self.too_small]} if self.too_small else {}
            return {**known, "folder": str(self.folder.resolve()), **ignored}
        for path, role in zip(map(Path, self.rows["path"]), self.rows["role"], strict=True):
            link = links.joinpath(*[str(role)] * self.by_folder, path.parent.name, path.name)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to((self.folder / path).resolve())
        return {**known, "folder": str(links)}


def read_classes(folder: Path, *, most: int | None = None) -> Classes:
    """The classes of a folder, split.

    Args:
        folder: with a folder per class, or folders ``train`` and ``test`` (or ``train``, ``query`` and ``gallery``) of
            such.
        most: pictures of a class that are kept, drawn by a fixed rule; ``None`` for all.

    Raises:
        ValueError: in one line, for a folder of another form, or too few classes or pictures, saying what is enough.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    if most is not None and most < FEWEST_PICTURES:
        raise ValueError(f"{most} pictures per class: at least {FEWEST_PICTURES} are needed")
    require_utf8(str(folder.resolve()))
    rows = layout.read(Dataset(title=str(folder), layout="folder"), folder)
    check_listable(rows["path"])
    remarks = tuple(rows.attrs["remarks"])
    by_folder = folders_say_roles(rows)
    too_small: tuple[str, ...] = ()
    if not by_folder:
        sizes = rows["class_name"].value_counts()
        small = rows["class_name"].isin(sizes.index[sizes < FEWEST_PICTURES])
        too_small = tuple(sorted({PurePosixPath(path).parent.name for path in rows.loc[small, "path"]}))
        rows = rows[~small]
        rows = rows.assign(role=rows["class_name"].map(split_classes(rows["class_name"].unique().tolist())))
    learned, held = (rows.loc[rows["role"].isin(roles), "class_name"].nunique() for roles in (["train"], HELD_OUT))
    if min(learned, held) < FEWEST_CLASSES:
        found = f"{learned} classes to train on and {held} to hold out are too few; {FEWEST_CLASSES} each are enough"
        if not by_folder:
            found = (
                f"{counted(learned + held, 'class')} with {FEWEST_PICTURES} pictures or more are too few; "
                f"{2 * FEWEST_CLASSES} are enough, half to train on and half to hold out"
            )
        raise ValueError(f"{folder}: {found}")
    if most is not None:
        generator = np.random.default_rng(SEED)
        groups = rows.sort_values("path").groupby(["role", "class_name"])
        rows = pd.concat([own.iloc[np.sort(generator.permutation(len(own))[:most])] for _, own in groups])
    return Classes(folder, rows.reset_index(drop=True), by_folder, too_small, remarks, most)


def folders_say_roles(rows: pd.DataFrame) -> bool:
    """Whether pictures, as the reader of folders lists them, have their roles from folders above those of classes."""
    tops = rows["path"].map(lambda path: PurePosixPath(path).parts[-3] if path.count("/") > 1 else "")
    return bool((tops == rows["role"]).all())


def split_classes(names: list[str]) -> dict[str, str]:
    """By class its role: half of them, drawn by a fixed rule, are held out (``test``), the others ``train``.

    Of an odd number the larger part trains. The rule knows the names alone: neither their order nor pictures move it.
    """
    ordered = sorted(names)
    drawn = np.random.default_rng(SEED).permutation(len(ordered))
    held = set(drawn[: len(ordered) // 2].tolist())
    return {name: "test" if place in held else "train" for place, name in enumerate(ordered)}
