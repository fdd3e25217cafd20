"""Hold finished tables and traces against the committed ones of their scale, and tables against the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from lookalike.files import json_text, read_json, read_json_value, write_text
from lookalike.reports.regression import compare, compare_printed, lost
from lookalike.reports.tolerance import FEWEST, measured_cells, reference_cells
from lookalike.statistics.verdict import OF_NUMBERS, counted
from lookalike.training.traces.comparison import as_text, trace_differences


def regression(
    tables: Mapping[str, str],
    *,
    reference: str,
    report: str,
    traces: Mapping[str, str] | None = None,
    reference_traces: str = "",
) -> None:
    """Write the comparisons as Markdown.

    Args:
        tables: CSV of each table.
        reference: JSON with the committed cells, empty for a scale without any.
        report: Markdown to write.
        traces: JSON of each trace, by ``recipe@dataset``.
        reference_traces: JSON with the committed traces, empty for a scale without any.

    Raises:
        ValueError: if a trace differs from the committed one, or a cell is worse than its reference, too good to be
            true, or missing; all of them are printed.
    """
    cells = _read(tables)
    committed = read_json_value(reference) if reference else []
    parts = {
        "Against the committed numbers": compare(cells, committed) if committed else None,
        "Against the printed numbers, where data and set-up are the papers'": compare_printed(cells),
    }
    text, closed, judged = ["# Regression of reported numbers", "In percent."], 0, 0
    differences = _different(traces or {}, reference_traces)
    for title, comparison in parts.items():
        text.append(f"## {title}")
        if comparison is None or comparison.empty:
            text.append("None at this scale.")
            continue
        print(f"{title}\n{comparison.to_string(index=False, float_format='%.2f')}\n")
        counts = counted(comparison["verdict"], OF_NUMBERS)
        text.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) + ".")
        text.append(comparison.to_markdown(index=False, floatfmt=".2f"))
        closed, judged = closed + len(lost(comparison)), judged + len(comparison)
    if reference_traces:
        text.append(f"## Traces\n\n{len(traces or {})} recipes compute what is committed, step by step.")
    if differences:
        name, difference = next(iter(differences.items()))
        more = f"; {len(differences)} of {len(traces or {})} traces differ, see the log" if len(differences) > 1 else ""
        raise ValueError(f"trace of {name} differs: {difference}{more}")
    if closed:
        raise ValueError(f"{closed} of {judged} numbers are worse, too good or missing, see the log")
    write_text(report, "\n\n".join(text) + "\n")


def record_traces(traces: Mapping[str, str], *, reference: str) -> None:
    """Write the committed traces anew."""
    write_text(reference, as_text({name: read_json(path) for name, path in traces.items()}))


def record(settings: Mapping[str, Mapping[str, str]], *, reference: str) -> None:
    """Write the committed numbers anew.

    Args:
        settings: CSV of each table, by the setting they were measured under.
        reference: JSON to write.

    Raises:
        ValueError: as `reference_cells`.
    """
    cells = {name: measured_cells(_read(tables)) for name, tables in settings.items()}
    write_text(reference, json_text(reference_cells(cells), where=reference, indent=0) + "\n")


def unbroken(settings: Mapping[str, Mapping[str, str]], *, report: str) -> None:
    """Hold each setting against what the others would have committed, and write what share of the tolerance it takes.

    Args:
        settings: CSV of each table, by the setting they were measured under.
        report: Markdown to write.

    Raises:
        ValueError: for too few settings; if the gate closes on a setting, and all of them are printed, since a job that
            fails keeps no report.
    """
    if len(settings) <= FEWEST:
        raise ValueError(
            f"a setting is held against at least {FEWEST} others, found {len(settings)} in all: run .ci/reference"
        )
    tables = {name: _read(files) for name, files in settings.items()}
    cells = {name: measured_cells(frames) for name, frames in tables.items()}
    rows = []
    for name, frames in tables.items():
        others = {other: frame for other, frame in cells.items() if other != name}
        comparison = compare(frames, reference_cells(others))
        closed = lost(comparison)
        print(f"{name}\n{closed.to_string(index=False)}\n")
        used = (comparison["difference"].abs() / comparison["tolerance"]).max()
        rows.append({"setting": name, "cells": len(comparison), "closed": len(closed), "largest share used": used})
    frame = pd.DataFrame(rows)
    listed = frame.to_markdown(index=False, floatfmt=".2f")
    print(listed)
    if frame["closed"].any():
        names = ", ".join(frame.loc[frame["closed"] > 0, "setting"])
        raise ValueError(f"the gate closes on unbroken runs: {names}, see the log")
    title = "# Unbroken runs\n\nEach setting against a reference made of the others."
    write_text(report, f"{title}\n\n{listed}\n")


def _different(traces: Mapping[str, str], reference: str) -> dict[str, str]:
    """What differs from the committed traces, by trace; all of it is printed."""
    measured = {name: read_json(path) for name, path in traces.items()}
    differences = trace_differences(measured, read_json(reference)) if reference else {}
    for name, difference in differences.items():
        print(f"trace of {name} differs: {difference}")
    return differences


def _read(tables: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: pd.read_csv(path) for name, path in tables.items()}
