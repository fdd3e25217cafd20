"""Coarse labels: the families, makes and other groups that classes belong to."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pandas as pd

from lookalike.base.paths import project_root
from lookalike.workflow.settings.datasets import Dataset

OWN = "hierarchy.csv"  # in a data set's root


def hierarchy_path(specification: Dataset, root: Path) -> Path | None:
    """The named hierarchy of ``params/hierarchies``, else the one in the data set's root, else ``None``."""
    if specification.hierarchy:
        return project_root() / "params" / "hierarchies" / f"{specification.hierarchy}.csv"
    return root / OWN if (root / OWN).is_file() else None


def read_hierarchy(path: Path) -> pd.DataFrame:
    """The table of a hierarchy: ``class_id``, ``class_name``, then one column of group names per level.

    Args:
        path: CSV with a header; the second column holds the class names under any title, ``body_type`` gives ``body``.

    Raises:
        ValueError: if the file is missing, does not begin with ``class_id`` and a name, has no level, names a class
            twice, or leaves a cell empty.
    """
    if not path.is_file():
        raise ValueError(f"hierarchy {path} does not exist")
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    if len(table.columns) < 3 or table.columns[0] != "class_id":
        raise ValueError(f"{path} must have the columns class_id, a name and levels, it has {', '.join(table.columns)}")
    table.columns = pd.Index(["class_id", "class_name", *(name.removesuffix("_type") for name in table.columns[2:])])
    if (table == "").to_numpy().any() or not table["class_id"].str.fullmatch(r"\d+").all():
        raise ValueError(f"{path} holds an empty cell or a class_id that is no number")
    twice = table["class_name"][table["class_name"].map(class_key).duplicated()]
    if len(twice):
        raise ValueError(f"{path}: class {twice.iloc[0]!r} stands twice")
    return table.astype({"class_id": "int64"})


def class_key(name: str) -> str:
    """The name without what repackings change: case and everything but letters and digits.

    ``Ram C/V Cargo Van`` cannot be the name of one folder, so repackings write ``C-V``, ``C_V`` or nest two folders.
    """
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFC", name).lower()).strip()


def groups(classes: pd.DataFrame, hierarchy: pd.DataFrame) -> pd.DataFrame:
    """The hierarchy's levels for each class.

    Classes are found by name, because a subset of a data set numbers its classes anew.

    Args:
        classes: rows with ``label`` and ``class_name``.
        hierarchy: groups of the classes, from ``read_hierarchy``.

    Returns:
        One row per row of ``classes``, one column of group names per level.

    Raises:
        ValueError: if a class is not in the hierarchy.
    """
    table = hierarchy.set_index(hierarchy["class_name"].map(class_key)).drop(columns=["class_id", "class_name"])
    keys = classes["class_name"].map(class_key)
    absent = classes["class_name"][~keys.isin(table.index)]
    if len(absent):
        raise ValueError(f"class {absent.iloc[0]!r} is not in the hierarchy, which has {len(table)} classes")
    return table.loc[keys].set_axis(classes.index)


def coarse_labels(classes: pd.DataFrame, hierarchy: pd.DataFrame) -> pd.DataFrame:
    """As ``groups``, with int64 columns ``coarse_<level>``: the group's place among the sorted names of its level.

    Where all names of a level are numbers it is the number itself, by which ``strangers_super`` calls it.
    """
    group_names = groups(classes, hierarchy)
    codes = {}
    for level in group_names.columns:
        names = sorted(hierarchy[level].unique())
        numbers = all(re.fullmatch(r"\d+", name) for name in names)
        code_of = {name: int(name) if numbers else place for place, name in enumerate(names)}
        codes[f"coarse_{level}"] = group_names[level].map(code_of).astype("int64")
    return pd.DataFrame(codes, index=classes.index)
