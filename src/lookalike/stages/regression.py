"""Hold finished tables against the committed numbers of their scale, and against the printed ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lookalike.files import write_text
from lookalike.tables.regression import VERDICTS, compare, compare_printed, lost, reference_cells


def regression(tables: Mapping[str, str], *, reference: str, report: str) -> None:
    """Write the comparisons as Markdown.

    Args:
        tables: CSV of each table.
        reference: JSON with the committed cells, empty for a scale without any.
        report: Markdown to write.

    Raises:
        ValueError: if a cell is worse than its reference, too good to be true, or missing; all of them are printed.
    """
    cells = _read(tables)
    committed = json.loads(Path(reference).read_text()) if reference else []
    parts = {
        "Against the committed numbers": compare(cells, committed) if committed else None,
        "Against the printed numbers, where data and set-up are the papers'": compare_printed(cells),
    }
    text, closed, judged = ["# Regression of reported numbers", "In percent."], 0, 0
    for title, comparison in parts.items():
        text.append(f"## {title}")
        if comparison is None or comparison.empty:
            text.append("None at this scale.")
            continue
        print(f"{title}\n{comparison.to_string(index=False, float_format='%.2f')}\n")
        counts = comparison["verdict"].value_counts().reindex(VERDICTS).dropna()
        text.append(", ".join(f"{count:.0f} {verdict}" for verdict, count in counts.items()) + ".")
        text.append(comparison.to_markdown(index=False, floatfmt=".2f"))
        closed, judged = closed + len(lost(comparison)), judged + len(comparison)
    if closed:
        raise ValueError(f"{closed} of {judged} numbers are worse, too good or missing, see the log")
    write_text(report, "\n\n".join(text) + "\n")


def record(tables: Mapping[str, str], *, reference: str) -> None:
    """Write the reference anew from finished tables over several seeds."""
    write_text(reference, json.dumps(reference_cells(_read(tables)), indent=0) + "\n")


def _read(tables: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: pd.read_csv(path) for name, path in tables.items()}
