"""Annotations of a layout: text files with rows of fields, and files of MATLAB, which are read in another process."""

from __future__ import annotations

import csv
import faulthandler
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

import pandas as pd

Content = TypeVar("Content")


def read_rows(path: Path, columns: Mapping[str, type], *, skip: int = 0) -> pd.DataFrame:
    """The rows of a text file; any run of white space parts the fields, the last field keeps the rest of its line.

    Args:
        path: UTF-8 text, with or without a byte order mark, any line ends. Blank lines are passed over.
        columns: name and type (``int``, ``float`` or ``str``) of the fields, in order.
        skip: header lines at the top.

    Returns:
        One column per field; ``int`` arrives as int64.

    Raises:
        ValueError: naming the file, if it is missing, not text, or a row lacks a field or holds a wrong value.
    """
    lines = text_of(path).splitlines()[skip:]
    return _columns([line.split(maxsplit=len(columns) - 1) for line in lines if line.strip()], columns, path)


def read_comma_rows(path: Path, columns: Mapping[str, type]) -> pd.DataFrame:
    """The rows of a text file whose fields are parted by commas, and in quotation marks where they hold one.

    Args and errors as of `read_rows`.
    """
    try:
        rows = [row for row in csv.reader(text_of(path).splitlines(), strict=True) if row]
    except csv.Error as error:
        raise ValueError(f"{path}: {error}; is a quotation mark left open?") from None
    return _columns(rows, columns, path)


def text_of(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        ValueError: naming the file, if it is missing or not text.
    """
    try:
        return required(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def _columns(rows: list[list[str]], columns: Mapping[str, type], path: Path) -> pd.DataFrame:
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{path}: {' '.join(row)!r} does not hold the fields {', '.join(columns)}")
    frame = pd.DataFrame(rows, columns=list(columns), dtype=str)
    for name, kind in columns.items():
        frame[name] = frame[name].str.rstrip() if kind is str else numbers(frame[name], kind, path)
    return frame


def numbers(values: pd.Series, kind: type, path: Path) -> pd.Series:
    """The column as int64 or float64; ``path`` is named where a value is none."""
    try:
        return values.astype("int64" if kind is int else "float64")
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{path}: column {values.name!r} holds a value that is no {kind.__name__}") from None


def required(path: Path) -> Path:
    """The path itself, if it is a file.

    Raises:
        ValueError: if it is not.
    """
    if not path.is_file():
        raise ValueError(f"{path} does not exist; the data set's root is the folder that holds its own top folder")
    return path


def base_folder(root: Path, candidates: Sequence[str], holds: str) -> Path:
    """The first of the candidate folders below ``root`` that holds the named file or folder.

    Raises:
        ValueError: if none does.
    """
    for candidate in candidates:
        if (root / candidate / holds).exists():
            return root / candidate
    places = ", ".join(candidate for candidate in candidates if candidate != ".")
    raise ValueError(
        f"{root / holds} does not exist, nor in {places}; "
        "the data set's root is the folder that holds its own top folder"
    )


def look_up(keys: pd.Series, table: pd.Series, what: str, path: Path) -> pd.Series:
    """``table`` at each key, where ``table`` is a column indexed by key.

    Raises:
        ValueError: naming ``path`` and the first key that occurs twice in the table or not at all.
    """
    twice = table.index[table.index.duplicated()]
    if len(twice):
        raise ValueError(f"{path}: {what} {twice[0]} stands twice")
    absent = keys[~keys.isin(table.index)]
    if len(absent):
        raise ValueError(f"{path}: no row for {what} {absent.iloc[0]}")
    return table.loc[keys].set_axis(keys.index)


def read_apart(read: Callable[[Path], Content], paths: Sequence[Path]) -> list[Content]:
    """Read files in a process of their own: some broken files of MATLAB end whatever process scipy reads them in.

    Args:
        read: a function of a module.
        paths: files, read in their order in one process.

    Returns:
        The function's value for each file.

    Raises:
        ValueError: as ``read``, and naming the file at which the process ended.
    """
    done: list[Content] = []
    forked = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=forked, initializer=faulthandler.disable) as pool:  # the line below says it
        try:
            for content in pool.map(read, paths):
                done.append(content)
        except BrokenProcessPool:
            raise ValueError(f"{paths[len(done)]} is broken: the process that reads it crashes") from None
    return done
