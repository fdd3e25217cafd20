"""Coarse labels: the families, makes and other groups that classes belong to."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lookalike.base.files import read_cells
from lookalike.base.paths import project_root
from lookalike.base.text import counted
from lookalike.workflow.data.class_names import TOLD, one_form
from lookalike.workflow.settings.datasets import Dataset

OWN = "hierarchy.csv"  # in a data set's root
LARGEST = 2**63 - 1  # int64
LOG = logging.getLogger(__name__)


def hierarchy_path(specification: Dataset, root: Path) -> Path | None:
    """The named hierarchy of ``params/hierarchies``, else the one in the data set's root, else ``None``."""
    if specification.hierarchy:
        return project_root() / "params" / "hierarchies" / f"{specification.hierarchy}.csv"
    return root / OWN if (root / OWN).is_file() else None


def read_hierarchy(path: Path) -> pd.DataFrame:
    """The table of a hierarchy: ``class_id``, ``class_name``, then one column of group names per level.

    Args:
        path: CSV with a header; the second column holds the class names under any title, ``body_type`` gives ``body``.
            Names are taken in one form.

    Raises:
        ValueError: if the file is missing, does not begin with ``class_id`` and a name, has no level, names a class
            twice, or leaves a cell empty; as `read_cells`.
    """
    if not path.is_file():
        raise ValueError(f"hierarchy {path} does not exist")
    header, rows = read_cells(path)
    table = pd.DataFrame(rows, columns=header, dtype=str)
    if len(table.columns) < 3 or table.columns[0] != "class_id":
        raise ValueError(f"{path} must have the columns class_id, a name and levels, it has {', '.join(table.columns)}")
    table.columns = pd.Index(["class_id", "class_name", *(name.removesuffix("_type") for name in table.columns[2:])])
    table = table.map(one_form)
    if (table == "").to_numpy().any() or not table["class_id"].map(_is_number).all():
        raise ValueError(f"{path} holds an empty cell or a class_id that is no number")
    twice = table["class_name"][table["class_name"].duplicated()]
    if len(twice):
        raise ValueError(f"{path}: class {twice.iloc[0]!r} stands twice")
    return table.astype({"class_id": "int64"})


def matched(names: Iterable[str], known: Iterable[str], *, loosened: bool) -> dict[str, str]:
    """By name the known one that it is, without names that are none.

    That is the name itself in one form. Repackings of Cars and CUB change case and signs: ``Ram C/V Cargo Van`` cannot
    be the name of one folder, so they write ``C-V``, ``C_V`` or nest two folders.

    Args:
        names: of classes.
        known: each of which one name can be.
        loosened: take a name that is none for the known one of the same letters and digits, where no other name and no
            other known one has these; a warning says so.
    """
    wanted, own = set(names), {one_form(name): name for name in known}
    found = {name: own[one_form(name)] for name in wanted if one_form(name) in own}
    if not loosened:
        return found
    strangers, free = (_by_letters(some) for some in (wanted - {*found}, {*own.values()} - {*found.values()}))
    alike = {
        strangers[key][0]: free[key][0]
        for key in sorted(strangers.keys() & free.keys() - {""})
        if len(strangers[key]) == len(free[key]) == 1
    }
    if alike:
        pairs = ", ".join([f"{name!r} for {meant!r}" for name, meant in alike.items()][:TOLD])
        LOG.warning("%s taken for one that shares letters and digits alone: %s", counted(len(alike), "class"), pairs)
    return found | alike


def _by_letters(names: Iterable[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name in names:
        grouped.setdefault(_letters(name), []).append(name)
    return grouped


def _letters(name: str) -> str:
    """Letters, with the marks on them, and digits, in lower case; all else is a gap."""
    kept = (sign if unicodedata.category(sign)[0] in "LMN" else " " for sign in one_form(name).lower())
    return " ".join("".join(kept).split())


def _is_number(name: str) -> bool:
    """Whether a name is written as a number that a label can be."""
    return re.fullmatch(r"\d+", name) is not None and int(name) <= LARGEST


def groups(classes: pd.DataFrame, hierarchy: pd.DataFrame, *, loosened: bool = False) -> pd.DataFrame:
    """The hierarchy's levels for each class.

    Classes are found by name, because a subset of a data set numbers its classes anew.

    Args:
        classes: rows with ``label`` and ``class_name``.
        hierarchy: groups of the classes, from ``read_hierarchy``.
        loosened: as of ``matched``.

    Returns:
        One row per row of ``classes``, one column of group names per level.

    Raises:
        ValueError: if a class is not in the hierarchy.
    """
    table = hierarchy.set_index("class_name").drop(columns="class_id")
    meant = classes["class_name"].map(matched(classes["class_name"].unique(), table.index, loosened=loosened))
    absent = classes["class_name"][meant.isna()]
    if len(absent):
        raise ValueError(f"class {absent.iloc[0]!r} is not in the hierarchy, which has {len(table)} classes")
    return table.loc[meant.to_list()].set_axis(classes.index)


def coarse_labels(classes: pd.DataFrame, hierarchy: pd.DataFrame, *, loosened: bool = False) -> pd.DataFrame:
    """As ``groups``, with int64 columns ``coarse_<level>``: the group's place among the sorted names of its level.

    Where all names of a level are numbers, no two the same one, it is the number itself, by which ``strangers_super``
    calls it.
    """
    group_names = groups(classes, hierarchy, loosened=loosened)
    codes = {}
    for level in group_names.columns:
        names = sorted(hierarchy[level].unique())
        numbers = all(map(_is_number, names)) and len(set(map(int, names))) == len(names)
        code_of = {name: int(name) if numbers else place for place, name in enumerate(names)}
        codes[f"coarse_{level}"] = group_names[level].map(code_of).astype("int64")
    return pd.DataFrame(codes, index=classes.index)
