"""The runs behind tables and choices of rates, with the files of their metrics and scores.

Snakemake asks for files by ``wildcards`` before it knows them, and for the runs with ``input``, the files in their
order. Of files that it has not made it knows nothing: there results of older code are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.base.paths import project_root
from lookalike.workflow.plan.fidelity import Departure, departures
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.origin import MIXED_BY, origin, rebuilding_options, terms_of
from lookalike.workflow.plan.rates import tried
from lookalike.workflow.plan.reuse import differs
from lookalike.workflow.running.records import decided_by

Runs = list[dict[str, Any]]


class Evidence:
    """Files and runs behind tables and choices of rates.

    Args:
        inputs: what the call's rules read.
        recorded: whether Snakemake knows how a file was made.
    """

    def __init__(self, inputs: Inputs, recorded: Callable[[str], bool]) -> None:
        self.inputs, self.plan, self._recorded = inputs, inputs.plan, recorded

    def metrics_of_table(self, wildcards: Any) -> list[str]:
        """Files with the metrics of the runs behind a table, in the order of the runs."""
        self.plan.refuse_unknown(table=wildcards.table)
        runs = self._runs_of(wildcards.table)[["recipe", "dataset", "seed"]]
        return [self.inputs.stored("metrics", *run) for run in runs.itertuples(index=False)]

    def runs_of_table(self, wildcards: Any) -> Runs:
        """The runs behind a table, each with where it comes from."""
        entry, departing = self.plan.table(wildcards.table), cache(departures)

        def listed(run: dict[str, Any]) -> Sequence[Departure]:
            point = entry.rows[run["row"]].prints.get(run["published"])
            printed = point.table if point else entry.published
            return departing(printed.paper, printed.table) if printed else []

        def described(run: dict[str, Any]) -> dict[str, Any]:
            named = run["recipe"], run["dataset"], run["seed"]
            terms = terms_of(self.plan, run, self.inputs.read_in(*named)) if entry.terms else {}
            made = origin(self.plan, run, self.inputs.made("metrics", *named), listed(run))
            return run | made | {"today": self._today(*named)} | terms

        runs = [described(run) for run in _rows(self._runs_of(wildcards.table))]
        self._refuse_unnoticed({run["metrics_file"]: (run["recipe"], run["dataset"], run["seed"]) for run in runs})
        return runs

    def entry_of_table(self, wildcards: Any) -> dict[str, Any]:
        """A table as it is planned, with a remark on rows that are not run."""
        entry, there = self.plan.table(wildcards.table), {*self._runs_of(wildcards.table)["row"]}
        asked = dict.fromkeys(self.plan.runs_of(wildcards.table)["row"])
        left = [entry.rows[row].label for row in asked if row not in there]
        remarks = [*entry.remarks, *([f"Not run: {', '.join(left)}."] if left else [])]
        return entry.model_copy(update={"remarks": remarks}).dump()

    def wants_training(self, recipe: str, dataset: str, seed: int, kind: str = "metrics") -> bool:
        """Whether a run wants a training that is not there, in a call that is to say so rather than to train.

        Args:
            recipe: of the run.
            dataset: its data set.
            seed: its seed.
            kind: of file that is read, as of `lookalike.workflow.plan.results.result_file`.
        """
        named = recipe, dataset, seed
        if self.plan.missing != "say" or self.plan.settings(recipe, dataset).train.loss is None:
            return False
        there = self.inputs.stored(kind, *named), self.inputs.made("model", *named)
        return not any((project_root() / file).is_file() for file in there)

    def _runs_of(self, table: str) -> pd.DataFrame:
        """Runs behind a table, without those that are not run."""
        runs = self.plan.runs_of(table)
        named = runs[["recipe", "dataset", "seed"]].itertuples(index=False, name=None)
        return runs[pd.Series([not self.wants_training(*run) for run in named], runs.index, dtype=bool)]

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

    def kinds_of_rates(self, wildcards: Any = None) -> list[tuple[Any, ...]]:
        """The kinds whose rates are searched."""
        return [tuple(each) for each in tried(self.plan)]

    def trials_of_rates(self, wildcards: Any) -> list[str]:
        """Files with the scores of the trials, one per kind, in their order."""
        folder = f"{self.inputs.results_folder}/rates"
        kinds = tried(self.plan)
        return [f"{folder}/{each.recipe}/{each.dataset}{each.half and f'.{each.half}'}.csv" for each in kinds]

    def check_results(self, files: Iterable[Any], runs: Sequence[tuple[str, str, int]]) -> None:
        """Refuse metrics of older code among the files of runs, each given as recipe, data set and seed."""
        named = {str(file): run for file, run in zip(files, runs, strict=True)}
        self._refuse_unnoticed({file: run for file, run in named.items() if file.endswith(".json")})

    def _today(self, recipe: str, dataset: str, seed: int) -> dict[str, str]:
        """Digests that decide a run's metrics now; `refuse_mixture` looks after data and weights."""
        return {key: value for key, value in self.inputs.today(recipe, dataset, seed).items() if key not in MIXED_BY}

    def _refuse_unnoticed(self, runs: Mapping[str, tuple[str, str, int]]) -> None:
        """Refuse finished metrics of older code or other settings that Snakemake takes for today's.

        Snakemake makes results again whose code or settings have changed since it made them. Files that it has not
        made, copied from another folder say, it keeps.

        Args:
            runs: by metrics file, recipe, data set and seed.

        Raises:
            ValueError: naming the first file and the lines that make all of them again, or keep them.
        """
        unnoticed = {file: run for file, run in runs.items() if Path(file).is_file() and not self._recorded(file)}
        said = {file: differs(decided_by(file), self._today(*run)) for file, run in unnoticed.items()}
        if differing := [file for file in said if said[file]]:
            more = f" (and {len(differing) - 1} more)" if differing[1:] else ""
            line = f"snakemake {' '.join(differing)} --cores all{rebuilding_options(self.plan)}"
            raise ValueError(
                f"{differing[0]}{more}: made by {said[differing[0]]}, and Snakemake has no record of it. Make anew: "
                f"`{line} --forcerun train`. Keep, if no number changed: `{line} --touch`"
            )


def _rows(frame: pd.DataFrame) -> Runs:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
