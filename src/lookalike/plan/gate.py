"""What the gate of ``regression`` compares: traces, committed numbers, and planted mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookalike.checks import require_known
from lookalike.data.checksums import file_digest
from lookalike.plan.inputs import Inputs
from lookalike.plan.traces import FILE, mutation_requests, read_mutations, trace_name, traced
from lookalike.settings.layers import Tree

REFERENCE = "results/reference"


class Gate:
    """Files and requests of the gate.

    Args:
        inputs: what the call's rules read.

    Raises:
        ValueError: for a mutation of ``params/mutations.yaml`` that cannot be.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, self.plan = inputs, inputs.plan
        self.mutations = read_mutations()
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

    def mutation(self, wildcards: Any) -> Tree:
        """Entry of a mutation.

        Raises:
            ValueError: for one that ``params/mutations.yaml`` does not hold, naming those that it does.
        """
        require_known(FILE, wildcards.mutation, self.mutations)
        return self.mutations[wildcards.mutation]

    def requests(self, wildcards: Any) -> dict[str, dict[str, Any]]:
        """What is traced to see a mutation."""
        return mutation_requests(self.plan, wildcards.mutation)

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
