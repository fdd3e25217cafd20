"""Assemble what each choice between paper and released code changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.files import read_json, replacing, write_text
from lookalike.reports.fidelity import document, fidelity_cells

CHECKPOINT = "best"  # as in the tables


def fidelity(
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    overruled: Collection[str],
    metrics: Sequence[str],
    metrics_unchanged: Sequence[str],
    output: str,
    published: str,
) -> None:
    """Write all differences as CSV and the document as Markdown.

    Args:
        runs: rows of `lookalike.plan.trials.trial_runs`.
        scale: scale at which they ran.
        overruled: names of the trials that the scale leaves nothing of.
        metrics: JSON files of the trials, in the order of the runs.
        metrics_unchanged: JSON files of the unchanged recipes, in the same order.
        output: path without extension of ``.csv`` and ``.md``.
        published: a copy of the document, empty for none.
    """
    files = zip(metrics, metrics_unchanged, strict=True)
    scored = [
        {**run, "metrics": read_json(changed)[CHECKPOINT], "metrics_unchanged": read_json(unchanged)[CHECKPOINT]}
        for run, (changed, unchanged) in zip(runs, files, strict=True)
    ]
    cells = fidelity_cells(scored)
    text = document(cells, overruled=overruled, scale=scale)
    with replacing(Path(f"{output}.csv")) as path:
        cells.to_csv(path, index=False, float_format="%.4f")
    for target in filter(None, (f"{output}.md", published)):
        write_text(target, text)
