"""The numbers that the papers print."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from lookalike.paths import project_root

# One printed row; `dataset` and `metric` tell its numbers apart.
ROW = ["method", "setting", "embedding_dim"]
COLUMNS = ["paper", "table", "dataset", *ROW[:1], "loss", *ROW[1:], "backbone", "metric", "value", "std", "source_note"]


@cache
def published_numbers(paper: str) -> pd.DataFrame:
    """All printed numbers of one paper, one per row, in percent.

    Returns:
        The columns `COLUMNS`, and ``printed`` and ``printed_std``: value and deviation as text, digit by digit.

    Raises:
        ValueError: if there is no such paper, or a line of its file is broken; the message names file and line.
    """
    path = project_root() / "params" / "published" / f"{paper}.csv"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.csv")))
        raise ValueError(f"no published numbers of {paper!r} in {path.parent}; known: {known}")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    if list(frame.columns) != COLUMNS:
        raise ValueError(f"{path}, line 1: columns must be {', '.join(COLUMNS)}")
    frame["printed"], frame["printed_std"] = frame["value"], frame["std"]
    for column in ("value", "std"):
        numbers = pd.to_numeric(frame[column], errors="coerce")
        broken = frame.index[numbers.isna() & ((frame[column] != "") | (column == "value"))]
        if len(broken):
            line = broken[0]
            raise ValueError(f"{path}, line {line + 2}, {column}: {frame[column][line]!r} is no number")
        frame[column] = numbers
    return frame


def printed_table(paper: str, table: str) -> pd.DataFrame:
    """The numbers of one printed table, in printed order.

    Raises:
        ValueError: if the paper has no such table.
    """
    numbers = published_numbers(paper)
    chosen = numbers[numbers["table"] == table]
    if chosen.empty:
        raise ValueError(f"paper {paper} has no table {table!r}; known: {', '.join(numbers['table'].unique())}")
    return chosen


def matches(row: Any, wanted: dict[str, Any]) -> bool:
    """Whether a printed row is the one that a table's row names by ``method``, ``setting`` and ``embedding_dim``."""
    return all(str(getattr(row, key)) == str(value) for key, value in wanted.items())
