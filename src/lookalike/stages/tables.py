"""Assemble one table from the metrics of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.files import read_json, replacing, write_text
from lookalike.plan.older import is_older
from lookalike.plan.origin import OLDER, OWN_SPLIT
from lookalike.plan.terms import row_costs
from lookalike.tables.cells import read_cells, table_cells, write_cells
from lookalike.tables.layout import for_readers
from lookalike.tables.render import latex, markdown


def tables(
    name: str,
    table: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    metrics: Sequence[str],
    output: str,
) -> None:
    """Write one table as CSV, Markdown and LaTeX.

    Args:
        name: of the table.
        table: its entry of ``params/tables``.
        runs: the runs behind it, as ``table_cells`` takes them, their metrics still in files.
        scale: what the scale calls itself.
        metrics: JSON files of the runs, in their order.
        output: path without extension; ``.csv`` holds every cell, ``.md`` and ``.tex`` are made of it for readers.
    """
    checkpoint = "last" if table.get("checkpoint") == "last" else "best"
    measured = [read_json(path) for path in metrics]
    scored = [
        {**run, "metrics": found[checkpoint], "queries": found["queries"], "code": found.get("code", "")}
        | {"departs": run["departs"] + OWN_SPLIT * (found.get("split") == "own") + OLDER * is_older(run, found)}
        | (row_costs(run["timings"], found) if table.get("terms") else {})
        for run, found in zip(runs, measured, strict=True)
    ]
    with replacing(f"{output}.csv") as path:
        write_cells(path, table_cells(table, scored))
    shown = for_readers(name, table, read_cells(f"{output}.csv"), scale)
    write_text(f"{output}.md", markdown(shown))
    write_text(f"{output}.tex", latex(shown))
