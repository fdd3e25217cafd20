"""What the gate of ``regression`` compares: traces and committed numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookalike.data.checksums import file_digest
from lookalike.plan.inputs import Inputs
from lookalike.settings.layers import Tree
from lookalike.plan.plan import Plan

REFERENCE = "results/reference"


class Gate:
    """Files and requests of the gate.

    Args:
        inputs: what the call's rules read.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, self.plan = inputs, inputs.plan
        self.reference = f"{REFERENCE}/{self.plan.compared_as}.json"
        self.reference_traces = f"{REFERENCE}/{self.plan.compared_as}_traces.json"

    def traces(self, wildcards: Any = None) -> dict[str, str]:
        """Files of the traces of all recipes of this scale's tables, by recipe and data set."""
        folder = f"{self.inputs.results_folder}/traces"
        return {trace_name(*run): f"{folder}/{run[0]}/{run[1]}.json" for run in traced(self.plan)}

    def compared_traces(self, wildcards: Any = None) -> dict[str, str]:
        """Files of the traces that there are committed ones of."""
        return self.traces() if Path(self.reference_traces).is_file() else {}

    def committed(self, wildcards: Any = None) -> dict[str, str]:
        """Digests of the committed numbers and traces, as far as there are any: others want another comparison."""
        files = [file for file in (self.reference, self.reference_traces) if Path(file).is_file()]
        return {file: file_digest(Path(file)) for file in files}

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
    """By what the committed traces are found."""
    return f"{recipe}@{dataset}"
