"""What must hold for the table of a split, whatever the layout it was read from."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd


def check_paths(paths: pd.Series) -> None:
    """Raise ``ValueError`` naming the first path that is absolute or leads out of the data set's root."""
    odd = paths[paths.str.startswith("/") | paths.str.contains(r"(?:^|/)\.\.(?:/|$)|\\", regex=True)]
    if len(odd):
        raise ValueError(f"path {odd.iloc[0]!r} is not allowed: it must be relative, with /, and without ..")


def check_rows_are_unique(frame: pd.DataFrame, columns: list[str]) -> None:
    """Raise ``ValueError`` naming the first path that is listed twice."""
    twice = frame.loc[frame.duplicated(columns), "path"]
    if len(twice):
        raise ValueError(f"{twice.iloc[0]} is listed twice")


def check_files(paths: pd.Series, root: Path) -> None:
    """Raise ``ValueError`` naming the first listed file that does not exist, and how many there are of them.

    Folders are listed, which takes seconds where asking for each of 500,000 files takes minutes on a network disk.
    """
    folders = paths.map(lambda path: str(PurePosixPath(path).parent))
    present = {f"{folder}/{name}" for folder in folders.unique() for name in _files(root / folder)}
    absent = paths[~(folders + "/" + paths.map(lambda path: PurePosixPath(path).name)).isin(present)]
    if len(absent):
        raise ValueError(
            f"{root / absent.iloc[0]} does not exist ({len(absent)} of {len(paths)} listed files are missing)"
        )


def check_counts(frame: pd.DataFrame, counts: Mapping[str, Mapping[str, int]], title: str) -> None:
    """Raise ``ValueError`` naming data set and role where classes or pictures differ from the expected numbers."""
    roles = frame.groupby("role")
    counted = pd.DataFrame({"classes": roles["label"].nunique(), "images": roles["path"].nunique()})
    for role, expected in counts.items():
        seen = {key: int(counted[key].get(role, 0)) for key in expected}
        if seen != dict(expected):
            raise ValueError(f"{title}, {role}: {_numbers(expected)} expected, {_numbers(seen)} found")
    unexpected = sorted(set(counted.index) - set(counts))
    if unexpected:
        raise ValueError(
            f"{title}: no images of role {unexpected[0]} expected, {counted['images'][unexpected[0]]} found"
        )


def _files(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file()]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):  # there is no such folder
            return []
        raise


def _numbers(values: Mapping[str, Any]) -> str:
    return " and ".join(f"{value} {key}" for key, value in values.items())
