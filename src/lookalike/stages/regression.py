"""Hold finished tables against the committed numbers of their scale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lookalike.files import write_text
from lookalike.tables.regression import compare, lost, reference_cells


def regression(tables: Mapping[str, str], *, reference: str, report: str) -> None:
    """Write the comparison as Markdown.

    Args:
        tables: CSV of each table.
        reference: JSON with the committed cells.
        report: Markdown to write.

    Raises:
        ValueError: if a cell is worse than its reference or missing; all of them are printed.
    """
    comparison = compare(_read(tables), json.loads(Path(reference).read_text()))
    print(comparison.to_string(index=False, float_format="%.2f"))
    closed = lost(comparison)
    if len(closed):
        raise ValueError(f"{len(closed)} of {len(comparison)} numbers are worse or missing, see the log")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison["verdict"].value_counts().items())
    text = comparison.to_markdown(index=False, floatfmt=".2f")
    write_text(report, f"# Regression of reported numbers\n\n{counts}. In percent.\n\n{text}\n")


def record(tables: Mapping[str, str], *, reference: str) -> None:
    """Write the reference anew from finished tables over several seeds."""
    write_text(reference, json.dumps(reference_cells(_read(tables)), indent=0) + "\n")


def _read(tables: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: pd.read_csv(path) for name, path in tables.items()}
