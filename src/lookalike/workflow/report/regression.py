"""The gate of ``regression``: tables, claims and traces beside committed ones, and tables beside printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookalike.base.files import file_digest, json_text, read_json, read_json_value, write_text
from lookalike.workflow.plan.equal_code import Other, note_equal, note_moved, other_code
from lookalike.workflow.plan.rates import USUAL
from lookalike.workflow.plan.results import REFERENCE
from lookalike.workflow.report.statistics.verdict import OF_NUMBERS, Verdict, counted
from lookalike.workflow.report.tolerance import (
    FEWEST,
    GAIN,
    KEY,
    QUERIES,
    gain_cells,
    gain_tolerances,
    measured_cells,
    reference_cells,
)
from lookalike.workflow.running.records import write_sums

if TYPE_CHECKING:
    from lookalike.workflow.plan.inputs import Inputs
    from lookalike.workflow.plan.plan import Plan

DEVIATIONS = 3.0  # of the larger deviation over seeds, ours or the printed one, for printed numbers
# Better by so many tolerances, a number comes from a mistake (self matches counted, test classes trained on) until
# somebody has looked and committed it.
SUSPICIOUS = 1.5
CLOSING = (Verdict.WORSE, Verdict.SUSPICIOUS, Verdict.MISSING)
COLUMNS = [*KEY, "reference", "measured", "difference", "tolerance", "verdict"]
Trace = Mapping[str, Sequence[float]]
# Of the largest number of a quantity. Float64 rounds at 1e-16 and three steps keep that below 1e-11 on every processor
# tried; what a mistake changes is far above.
TOLERANCE = 1e-6
# Below this a quantity is a zero that rounding left, such as the gradient of a part that a loss does not reach.
ZERO = 1e-12


class Gate:
    """Files and requests of the gate: it makes anew whatever there are committed results of.

    Args:
        inputs: what the call's rules read.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, self.plan = inputs, inputs.plan
        self.reference = f"{REFERENCE}/{self.plan.compared_as}/numbers.json"
        self.reference_traces = f"{REFERENCE}/{self.plan.compared_as}/traces.json"
        self.reference_claims = f"{REFERENCE}/{self.plan.compared_as}/claims.csv"

    def tables(self, wildcards: Any = None) -> dict[str, str]:
        """Tables of the call by name, if there are committed numbers or printed ones of their set-up.

        Raises:
            ValueError: for a scale with neither, and without committed claims: nothing could be worse there.
        """
        if Path(self.reference).is_file() or self.plan.runs["comparable"].any():
            return {name: f"{self.inputs.results_folder}/tables/{name}.csv" for name in self.plan.table_names}
        if not self.claims():
            raise ValueError(
                f"{self.plan.compared_as}: no row has the printed set-up, and {self.reference_claims} is not there, so "
                "that there is nothing to hold a run against; the targets `claims` and `adopt` make it"
            )
        return {}

    def claims(self, wildcards: Any = None) -> str | list[str]:
        """The file with the results of the claims' rows, none if none is committed.

        Raises:
            ValueError: for a committed file of older code, which does not say how far other seeds lie.
        """
        if not Path(self.reference_claims).is_file():
            return []
        if missing := [name for name in GAIN if name not in pd.read_csv(self.reference_claims, nrows=0)]:
            raise ValueError(
                f"{self.reference_claims} is of older code: it lacks {' and '.join(missing)}, how far gains of other "
                "seeds lie, so that none can be held against it; the targets `claims` and `adopt` make it anew"
            )
        return f"{self.inputs.results_folder}/held/claims.csv"

    @property
    def held(self) -> list[str]:
        """Data sets whose claims are made anew: the stand-in for `USUAL`; all without one, or where a call says so."""
        usual = [name for name, dataset in self.plan.datasets.items() if dataset.stands_for == USUAL]
        return usual if usual and self.plan.held == "usual" else [*self.plan.datasets]

    def traces(self, wildcards: Any = None) -> dict[str, str]:
        """Files of the traces of all recipes of this scale's tables, by recipe and data set."""
        folder = f"{self.inputs.results_folder}/traces"
        return {trace_name(*run): f"{folder}/{run[0]}/{run[1]}.json" for run in traced(self.plan)}

    def compared_traces(self, wildcards: Any = None) -> dict[str, str]:
        """Files of the traces that there are committed ones of."""
        return self.traces() if Path(self.reference_traces).is_file() else {}

    def committed(self, wildcards: Any = None) -> dict[str, str]:
        """Digests of the committed files, as far as there are any: others want another comparison."""
        held = (self.reference, self.reference_traces, self.reference_claims)
        files = [file for file in held if Path(file).is_file()]
        return {file: file_digest(Path(file)) for file in files}

    def other_code(self, wildcards: Any = None) -> list[list[str]]:
        """Digests that `equal_code.other_code` finds, at a scale with committed traces; none elsewhere."""
        return [list(other) for other in other_code()] if Path(self.reference_traces).is_file() else []

    def measured_settings(self, wildcards: Any = None) -> dict[str, dict[str, str]]:
        """Tables of this scale by the setting that `.ci/reference` has measured them under, and by name."""
        folders = sorted(Path("results").glob(f"{self.plan.compared_as}_torch*"))
        return {
            folder.name: {table: f"{folder}/tables/{table}.csv" for table in self.plan.table_names}
            for folder in folders
        }

    def measured_files(self, wildcards: Any = None) -> list[str]:
        """All files of `measured_settings`."""
        return [file for files in self.measured_settings().values() for file in files.values()]


def traced(plan: Plan) -> list[tuple[str, str]]:
    """Recipe and data set of each trace: one for all seeds."""
    runs = plan.runs[["recipe", "dataset"]].drop_duplicates()
    return [(str(recipe), str(dataset)) for recipe, dataset in runs.itertuples(index=False)]


def trace_name(recipe: str, dataset: str) -> str:
    """Key of a trace among the committed ones."""
    return f"{recipe}@{dataset}"


def regression(
    tables: Mapping[str, str],
    *,
    report: str,
    reference: str = "",
    claims: str = "",
    reference_claims: str = "",
    held: Sequence[str] = (),
    traces: Mapping[str, str] | None = None,
    reference_traces: str = "",
    other_code: Sequence[Sequence[str]] = (),
) -> None:
    """Write the comparisons as Markdown; where every trace is unmoved, note that other code computes the same.

    Args:
        tables: CSV of each table.
        report: Markdown to write.
        reference: JSON with the committed cells, empty for a scale without any.
        claims: CSV with the rows of claims, empty where none are committed.
        reference_claims: the committed one.
        held: data sets whose claims are held against it.
        traces: JSON of each trace, by ``recipe@dataset``.
        reference_traces: JSON with the committed traces, empty for a scale without any.
        other_code: digests of committed metrics that today's code has no longer, as `equal_code.other_code` gives them.

    Raises:
        ValueError: if a trace differs from the committed one, or a number is worse than its reference, too good to be
            true, or missing; all of them are printed.
    """
    cells = _read(tables)
    committed = read_json_value(reference) if reference else []
    parts = {
        "Against the committed numbers": compare(cells, committed) if committed else None,
        _gains_of(held, reference_claims): compare_claims(claims, reference_claims, held) if reference_claims else None,
        "Against the printed numbers, where data and set-up are the papers'": compare_printed(cells) if cells else None,
    }
    text, closed, judged = ["# Regression of reported numbers", "In percent."], 0, 0
    differences = _different(traces or {}, reference_traces)
    for title, comparison in parts.items():
        if comparison is None or comparison.empty:
            continue
        text.append(f"## {title}")
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
    if not judged and not reference_traces:
        raise ValueError(
            "no number of these tables is committed, and none has the printed set-up: nothing was compared"
        )
    write_text(report, "\n\n".join(text) + "\n")
    if reference_traces and (noted := note_equal(Other(*other) for other in other_code)):
        print(noted)


def record_traces(traces: Mapping[str, str], *, reference: str, other_code: Sequence[Sequence[str]] = ()) -> None:
    """Write the committed traces anew, and note of which code that committed metrics name the numbers have moved.

    Args:
        traces: JSON of each trace, by ``recipe@dataset``.
        reference: JSON to write.
        other_code: as for `regression`.
    """
    found = {name: read_json(path) for name, path in traces.items()}
    before = read_json(reference) if Path(reference).is_file() else {}
    differing = trace_differences(found, before)
    moved = {name.partition("@")[0] for name in differing}
    unmoved = {name.partition("@")[0] for name in found.keys() & before.keys()} - moved
    write_text(reference, traces_text(found))
    write_sums(Path(reference).parent)
    if noted := note_moved([Other(*other) for other in other_code], moved, unmoved):
        print(noted)


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
    write_sums(Path(reference).parent)


def unbroken(settings: Mapping[str, Mapping[str, str]], *, report: str) -> None:
    """Hold each setting against a reference made of the others, and write the share of the tolerance that it takes.

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
    """Differences from the committed traces, by trace; all are printed."""
    measured = {name: read_json(path) for name, path in traces.items()}
    differences = trace_differences(measured, read_json(reference)) if reference else {}
    for name, difference in differences.items():
        print(f"trace of {name} differs: {difference}")
    return differences


def compare(tables: Mapping[str, pd.DataFrame], reference: list[dict[str, Any]]) -> pd.DataFrame:
    """Every cell with its reference and a verdict.

    Args:
        tables: cells by table, as ``table_cells`` returns them.
        reference: as `reference_cells` returned it once.

    Returns:
        Columns `COLUMNS`, in percent. ``verdict`` is ``pass``, ``worse``, ``better``, ``suspicious`` (too good),
        ``missing`` (a reference without a cell) or ``new``.
    """
    expected = pd.DataFrame(reference, columns=[*KEY, "value", "tolerance"]).rename(columns={"value": "reference"})
    measured = measured_cells(tables)[[*KEY, "value"]].rename(columns={"value": "measured"})
    return _judged(expected.merge(measured, on=KEY, how="outer"))


def _gains_of(held: Sequence[str], reference: str) -> str:
    """Title of the gains, which says of what data sets they are."""
    committed = dict.fromkeys(pd.read_csv(reference)["dataset"]) if reference else ()
    compared, left = (", ".join(name for name in committed if (name in held) is there) for there in (True, False))
    return f"Gains against the committed ones on {compared}{f', without {left}' if left else ''}"


def compare_claims(measured: str, reference: str, held: Sequence[str]) -> pd.DataFrame:
    """Every gain that a claim speaks of, with the committed one and a verdict, as `compare`.

    Args:
        measured: CSV of `lookalike.workflow.report.claims.claims`.
        reference: the committed one, whose rows say how far a gain lies from that of other seeds.
        held: data sets whose gains are compared.
    """
    committed = pd.read_csv(reference)
    expected = gain_cells(committed[committed["dataset"].isin(held)]).rename(columns={"value": "reference"})
    found = gain_cells(pd.read_csv(measured))[[*KEY, "value", "seeds"]]
    both = expected.merge(found.rename(columns={"value": "measured", "seeds": "seeds_again"}), on=KEY, how="outer")
    return _judged(both.assign(tolerance=gain_tolerances(both)))


def compare_printed(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every cell whose data, backbone and setting are the printed ones, with the printed number and a verdict.

    Args:
        tables: cells by table.

    Returns:
        As `compare`; the tolerance is that of the larger deviation, ours over seeds or the printed one. A cell with
        neither is ``undecided``.
    """
    cells = pd.concat([frame.assign(table=name) for name, frame in tables.items()], ignore_index=True)
    cells = cells[cells["mean"].notna() & cells["difference"].notna()]
    deviation = cells[["std", "published_std"]].astype(float).max(axis=1)
    tolerance = (DEVIATIONS * deviation).clip(lower=100 * QUERIES / cells["queries"].astype(float))
    cells = cells.assign(tolerance=tolerance.where(deviation.notna()))
    return _judged(cells.rename(columns={"published": "reference", "mean": "measured"}))


def _judged(cells: pd.DataFrame) -> pd.DataFrame:
    cells = cells.assign(difference=cells["measured"] - cells["reference"], verdict=Verdict.PASS)
    cells.loc[cells["difference"] < -cells["tolerance"], "verdict"] = Verdict.WORSE
    cells.loc[cells["difference"] > cells["tolerance"], "verdict"] = Verdict.BETTER
    cells.loc[cells["difference"] > SUSPICIOUS * cells["tolerance"], "verdict"] = Verdict.SUSPICIOUS
    cells.loc[cells["tolerance"].isna(), "verdict"] = Verdict.UNDECIDED
    cells.loc[cells["reference"].isna(), "verdict"] = Verdict.NEW
    cells.loc[cells["measured"].isna(), "verdict"] = Verdict.MISSING
    return cells[COLUMNS].reset_index(drop=True)


def lost(comparison: pd.DataFrame) -> pd.DataFrame:
    """The cells that close the gate: worse than their reference, too good to be true, or missing."""
    return comparison[comparison["verdict"].isin(CLOSING)]


def trace_difference(measured: Trace, reference: Trace) -> str:
    """The first quantity of a trace that is not the committed one, empty if there is none.

    Args:
        measured: lists of numbers by quantity.
        reference: the committed ones.

    Returns:
        Quantity, and where it differs the index in its list, the reference and what was measured.
    """
    for quantity, expected in reference.items():
        values = measured.get(quantity)
        if values is None:
            return f"{quantity}: the reference has it, this trace does not"
        if len(values) != len(expected):
            return f"{quantity}: reference of {len(expected)} numbers, found {len(values)}"
        allowed = max(TOLERANCE * max(map(abs, expected), default=0.0), ZERO)
        for index, (value, number) in enumerate(zip(values, expected, strict=True)):
            if not abs(value - number) <= allowed:
                return f"{quantity}[{index}]: reference {number:.9g}, found {value:.9g}"
    return ""


def trace_differences(measured: Mapping[str, Trace], reference: Mapping[str, Trace]) -> dict[str, str]:
    """Differences by trace: those of the reference that differ or are not there. New ones do not count."""
    differences = {
        name: trace_difference(measured[name], expected)
        if name in measured
        else "the reference has it, this call does not"
        for name, expected in reference.items()
    }
    return {name: difference for name, difference in differences.items() if difference}


def traces_text(traces: Mapping[str, Trace]) -> str:
    """Traces as JSON, a line for each quantity, numbers to twelve digits: a thousandth of the compared precision."""
    rounded = {
        name: {quantity: [float(f"{value:.12g}") for value in values] for quantity, values in sorted(trace.items())}
        for name, trace in sorted(traces.items())
    }
    lines = [
        f'"{name}": {{\n'
        + ",\n".join(f'  "{quantity}": {json_text(values, where=name)}' for quantity, values in trace.items())
        for name, trace in rounded.items()
    ]
    return "{\n" + "\n},\n".join(lines) + "\n}\n}\n"


def _read(tables: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: pd.read_csv(path) for name, path in tables.items()}
