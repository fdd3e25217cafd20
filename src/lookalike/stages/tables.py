"""Assemble one table from the metrics of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.files import read_json, replacing, write_text
from lookalike.tables.cells import table_cells
from lookalike.tables.render import latex, markdown


def tables(
    table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], *, scale: str, metrics: Sequence[str], output: str
) -> None:
    """Write one table as CSV, Markdown and LaTeX.

    Args:
        table: its entry of ``params/tables``.
        runs: the runs behind it, as ``table_cells`` takes them, their metrics still in files.
        scale: what the scale calls itself.
        metrics: JSON files of the runs, in their order.
        output: path without extension; ``.csv`` holds every cell, ``.md`` and ``.tex`` are for readers.
    """
    checkpoint = table.get("checkpoint", "best")
    measured = [read_json(path) for path in metrics]
    scored = [
        {**run, "metrics": found[checkpoint], "queries": found["queries"]}
        for run, found in zip(runs, measured, strict=True)
    ]
    cells = table_cells(table, scored)
    with replacing(Path(f"{output}.csv")) as path:
        cells.to_csv(path, index=False, float_format="%.4f")
    notes = _notes(checkpoint, scale, sorted({run["seed"] for run in runs}))
    write_text(f"{output}.md", markdown(table["title"], notes, cells))
    write_text(f"{output}.tex", latex(table["title"], notes, cells))


def _notes(checkpoint: str, scale: str, seeds: list[int]) -> list[str]:
    shown = {
        "best": "the epoch with the best R@1 on the test split, as the papers report it",
        "last": "the last epoch",
    }[checkpoint]
    over = f"n = {len(seeds)} (seed{'s' if len(seeds) > 1 else ''} {', '.join(str(seed) for seed in seeds)})"
    spread = ", mean ± standard deviation over seeds" if len(seeds) > 1 else ""
    return [f"In percent, test classes never seen in training; {shown}; {over}{spread}. Scale: {scale}."]
