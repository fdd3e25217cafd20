"""The numbers that the papers print."""

from __future__ import annotations

import csv
import difflib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from lookalike.base.files import read_text
from lookalike.base.paths import project_root
from lookalike.workflow.settings.files import dataset_names
from lookalike.workflow.settings.tables import PrintedRow


class PrintedLine(NamedTuple):
    """One printed row; `dataset` and `metric` tell its numbers apart."""

    method: str
    setting: str
    embedding_dim: str


ROW = list(PrintedLine._fields)
# What tells a number from all others.
IDENTITY = ["paper", "table", "dataset", *ROW, "metric"]
COLUMNS = ["paper", "table", "dataset", *ROW[:1], "loss", *ROW[1:], "backbone", "metric", "value", "std", "source_note"]


def papers() -> list[str]:
    """Papers with printed numbers; beside them ``settings.csv`` holds the settings of their rows."""
    folder = project_root() / "params" / "published"
    return sorted(path.stem for path in folder.glob("*.csv") if path.stem != "settings")


@cache
def published_numbers(paper: str) -> pd.DataFrame:
    """All printed numbers of one paper, one per row, in percent.

    Returns:
        The columns `COLUMNS`, and ``printed`` and ``printed_std``: value and deviation as text, digit by digit.

    Raises:
        ValueError: if there is no such paper, or a line of its file is broken; the message names file and line.
    """
    path = project_root() / "params" / "published" / f"{paper}.csv"
    if paper not in papers():
        raise ValueError(f"no published numbers of {paper!r} in {path.parent}; known: {', '.join(papers())}")
    frame = _read(path, paper)
    frame["printed"], frame["printed_std"] = frame["value"], frame["std"]
    for column in ("value", "std"):
        numbers = pd.to_numeric(frame[column], errors="coerce").replace([math.inf, -math.inf], math.nan)
        broken = frame.index[numbers.isna() & ((frame[column] != "") | (column == "value"))]
        if len(broken):
            line = broken[0]
            raise ValueError(f"{path}, line {line + 2}, {column}: {frame[column][line]!r} is no number, such as 61.8")
        frame[column] = numbers
    return frame


def nameable_datasets() -> set[str]:
    """Data sets that a table can name: those of ``params/datasets`` and those of any printed number."""
    printed = {name for paper in papers() for name in published_numbers(paper)["dataset"].unique()}
    return printed | {*dataset_names()}


def printed_table(paper: str, table: str, read_as: Mapping[str, str] | None = None, where: str = "") -> pd.DataFrame:
    """The numbers of one printed table, in printed order.

    Args:
        paper: paper that prints the table.
        table: name of the table in the paper's file.
        read_as: metrics that are others than their caption says, by the name in the file.
        where: file and key that ask for it, for the message.

    Raises:
        ValueError: if the paper has no such table, or the table has no number of a metric in ``read_as``.
    """
    prefix = f"{where}: " if where else ""
    numbers = published_numbers(paper)
    of_table = numbers[numbers["table"] == table]
    if of_table.empty:
        raise ValueError(f"{prefix}paper {paper} has no table {table!r}; known: {', '.join(numbers['table'].unique())}")
    for metric in read_as or {}:
        if metric not in set(of_table["metric"]):
            printed = ", ".join(of_table["metric"].unique())
            raise ValueError(f"{prefix}read_as: table {table} of {paper} prints no {metric!r}; it has {printed}")
    return of_table.assign(metric=of_table["metric"].replace(dict(read_as or {})))


def printed_rows(numbers: pd.DataFrame) -> list[PrintedLine]:
    """The rows of a printed table, in printed order."""
    return list(dict.fromkeys(map(PrintedLine, *(numbers[column] for column in ROW))))


def repeated_row(rows: Sequence[PrintedLine], wanted: PrintedRow, where: str) -> int:
    """Place of the printed row that a table's row repeats.

    Args:
        rows: printed rows, from `printed_rows`.
        wanted: ``published`` of the table's row, which names it by some of `ROW`.
        where: file, table and row that ask for it, for the message.

    Raises:
        ValueError: if it is none, or several; the message shows the rows that are nearest.
    """
    named = {key: str(value) for key, value in wanted.dump().items()}
    matching = [number for number, row in enumerate(rows) if named.items() <= row._asdict().items()]
    if len(matching) != 1:
        lines = [", ".join(f"{key}: {value}" for key, value in row._asdict().items() if value) for row in rows]
        asked = ", ".join(f"{key}: {value}" for key, value in named.items())
        near = [lines[row] for row in matching] or difflib.get_close_matches(asked, lines, n=3, cutoff=0)
        shown = "; ".join(f"{{{line}}}" for line in near[:3])
        raise ValueError(
            f"{where} names {wanted.dump()}: {len(matching)} printed rows are that, not one; nearest: {shown}"
        )
    return matching[0]


def _read(path: Path, paper: str) -> pd.DataFrame:
    """All fields as text; a line stands for a row, so that row i is line i + 2."""
    lines = list(_lines(path, csv.reader(io.StringIO(read_text(path)), strict=True)))
    if not lines or lines[0] != COLUMNS:
        raise ValueError(f"{path}, line 1: columns must be {', '.join(COLUMNS)}")
    seen: dict[tuple[str, ...], int] = {}
    for number, fields in enumerate(lines[1:], start=2):
        row = dict(zip(COLUMNS, fields, strict=True))
        if row["paper"] != paper:
            raise ValueError(f"{path}, line {number}, paper: {row['paper']!r} stands in the file of {paper!r}")
        for column in ("table", "dataset", "method", "metric"):
            if not row[column]:
                raise ValueError(f"{path}, line {number}, {column}: is empty")
        if (first := seen.setdefault(tuple(row[column] for column in IDENTITY), number)) != number:
            raise ValueError(f"{path}, line {number}: the number of line {first} stands here again")
    return pd.DataFrame(lines[1:], columns=COLUMNS, dtype=str)


def _lines(path: Path, reader: Any) -> Iterator[list[str]]:
    number = 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{path}, line {number}: {error}; is a quotation mark left open?") from None
        if len(fields) != len(COLUMNS) or reader.line_num != number:
            raise ValueError(f"{path}, line {number}: {len(fields)} fields, not the {len(COLUMNS)} of line 1")
        yield fields
        number += 1
