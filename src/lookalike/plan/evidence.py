"""The runs behind tables and choices of rates, with the files that hold what they reached.

Snakemake asks for files by ``wildcards`` before it knows them, and for the runs with ``input``, the files in their
order. Where it has no record of how a file came about, results of older code are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.plan.fidelity import departures
from lookalike.plan.inputs import Inputs
from lookalike.plan.mixture import MIXED_BY
from lookalike.plan.origin import origin, rebuilding_options, terms_of
from lookalike.plan.rates import trial_seeds, trials
from lookalike.plan.reuse import refuse_unnoticed

Runs = list[dict[str, Any]]


class Evidence:
    """Files and runs of what is reported.

    Args:
        inputs: what the call's rules read.
        recorded: whether Snakemake knows how a file was made.
    """

    def __init__(self, inputs: Inputs, recorded: Callable[[str], bool]) -> None:
        self.inputs, self.plan, self._recorded = inputs, inputs.plan, recorded

    def metrics_of_table(self, wildcards: Any) -> list[str]:
        """Files with the metrics of the runs behind a table, in the order of the runs."""
        self.plan.refuse_unknown(table=wildcards.table)
        runs = self.plan.runs_of(wildcards.table)[["recipe", "dataset", "seed"]]
        return [self.inputs.stored("metrics", *run) for run in runs.itertuples(index=False)]

    def runs_of_table(self, wildcards: Any, input: Any) -> Runs:
        """The runs behind a table, each with where it comes from."""
        entry = self.plan.table(wildcards.table)
        printed, shows_terms = entry.get("published"), entry.get("terms", False)
        listed = departures(printed["paper"], printed["table"]) if printed else []
        runs = [
            run
            | origin(self.plan, run, str(file), listed)
            | self._today(run["recipe"], run["dataset"])
            | (terms_of(self.plan, run) if shows_terms else {})
            for run, file in zip(_rows(self.plan.runs_of(wildcards.table)), input.metrics, strict=True)
        ]
        self._refuse_unnoticed(runs)
        return runs

    def tables_of_family(self, family: str) -> Callable[[Any], list[str]]:
        """Tables of the sweeps in one file of ``params/sweeps``; read only where they are asked for."""
        return lambda wildcards: [
            f"{self.inputs.results_folder}/tables/{name}{suffix}"
            for name, sweep in self.plan.sweeps.items()
            if sweep.family == family
            for suffix in (".csv", ".md", ".tex")
        ]

    def table_files(self, wildcards: Any = None) -> dict[str, str]:
        """Tables of the call, by name."""
        return {name: f"{self.inputs.results_folder}/tables/{name}.csv" for name in self.plan.table_names}

    def trials_of_rates(self, wildcards: Any = None) -> list[tuple[Any, ...]]:
        """The trials among which rates are chosen."""
        return [tuple(trial) for trial in trials(self.plan)]

    def histories_of_rates(self, wildcards: Any) -> list[str]:
        """Files that say what these trials reached, all seeds of one after those of the one before."""
        folder = f"{self.inputs.results_folder}/rates"
        return [
            f"{folder}/{trial.recipe}/{trial.dataset}/trial{trial.number}-seed{seed}.csv"
            for trial in trials(self.plan)
            for seed in trial_seeds(self.plan)
        ]

    def check_results(self, files: Iterable[Any], runs: Sequence[tuple[str, str]]) -> None:
        """Refuse metrics of older code among the files of runs, each given as recipe and data set."""
        of_file = {str(file): run for file, run in zip(files, runs, strict=True) if str(file).endswith(".json")}
        options = rebuilding_options(self.plan)
        self._refuse_unnoticed(
            [
                {"metrics_file": file, "options": options, **self._today(*of_file[file])}
                for file in self._unrecorded(of_file)
            ]
        )

    def _today(self, recipe: str, dataset: str) -> dict[str, Any]:
        """What would make a run's metrics now; `lookalike.plan.mixture` looks after data and weights."""
        today = self.inputs.today(recipe, dataset)
        made_by = {key: value for key, value in today.items() if key not in MIXED_BY}
        return {"code_today": today["code"], "today": made_by}

    def _refuse_unnoticed(self, runs: Runs) -> None:
        refuse_unnoticed(runs, self._unrecorded(run["metrics_file"] for run in runs))

    def _unrecorded(self, files: Iterable[str]) -> list[str]:
        """Those that exist and that Snakemake has no record of."""
        return [file for file in files if Path(file).is_file() and not self._recorded(file)]


def _rows(frame: pd.DataFrame) -> Runs:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
