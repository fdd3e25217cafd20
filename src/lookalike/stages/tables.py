"""Assemble one table from the metrics of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.files import read_json, replacing, write_text
from lookalike.plan.mixture import mixed_runs, refuse_mixture
from lookalike.plan.older import is_older
from lookalike.plan.origin import MIXED, OLDER, OWN_SPLIT
from lookalike.plan.terms import row_costs, warm_query_ms
from lookalike.tables.cells import APART, WARM, read_cells, table_cells, write_cells
from lookalike.tables.layout import for_readers
from lookalike.tables.render import latex, markdown
from lookalike.text import counted


def tables(
    name: str,
    table: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    metrics: Sequence[str],
    output: str,
    mixed: bool = False,
) -> None:
    """Write one table as CSV, Markdown and LaTeX.

    Args:
        name: name of the table.
        table: the table's entry of ``params/tables``.
        runs: the runs behind it, as ``table_cells`` takes them, their metrics still in files.
        scale: what the scale calls itself.
        metrics: JSON files of the runs, in their order.
        output: path without extension; ``.csv`` holds every cell, ``.md`` and ``.tex`` are made of it for readers.
        mixed: whether runs that read other data or weights under one name stand beside each other, marked.

    Raises:
        ValueError: for such runs, unless they are to be ``mixed``.
    """
    checkpoint = "last" if table.get("checkpoint") == "last" else "best"
    measured = [read_json(path) for path in metrics]
    if not mixed:
        refuse_mixture([{**run, "metrics_file": path} for run, path in zip(runs, metrics, strict=True)], measured)
    differing = {index for group in mixed_runs(runs, measured) for index in group}
    scored = [
        {**run, "metrics": content[checkpoint], "queries": content["queries"], "code": content.get("code", "")}
        | {"departs": run["departs"] + _marks(run, content) + MIXED * (index in differing), APART: _apart(content)}
        | (_costs(run["timings"], content) if table.get("terms") else {})
        for index, (run, content) in enumerate(zip(runs, measured, strict=True))
    ]
    with replacing(f"{output}.csv") as path:
        write_cells(path, table_cells(table, scored))
    shown = for_readers(name, table, read_cells(f"{output}.csv"), scale)
    write_text(f"{output}.md", markdown(shown))
    write_text(f"{output}.tex", latex(shown))


def _apart(metrics: Mapping[str, Any]) -> str:
    """What of its data set a run does not count, empty where it counts everything."""
    said = []
    if left_out := metrics.get("left_out"):
        copies = f" ({metrics['copies']} as copies of others)" if "copies" in metrics else ""
        said.append(f"{counted(left_out, 'picture')} left out by the split{copies}, named in its manifest")
    if alone := metrics.get("queries_without_positive"):
        said.append(
            f"{alone:,} of {metrics['queries']:,} queries in no metric, their class having no other picture there"
        )
    return "; ".join(said)


def _costs(files: Mapping[str, str], metrics: Mapping[str, Any]) -> dict[str, float | None]:
    return {**row_costs(files, metrics), WARM: warm_query_ms(files)}


def _marks(run: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """What the metrics of a run say of where they come from."""
    return OWN_SPLIT * (metrics.get("split") == "own") + OLDER * is_older(run, metrics)
