"""The runs behind tables, figures, claims and fidelity, with the files that hold what they reached.

Snakemake asks for files by ``wildcards`` before it knows them, and for the runs with ``input``, the files in their
order. Where it has no record of how a file came about, results of older code are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.checks import require_known

from lookalike.plan.digests import recipe_digest
from lookalike.plan.explanations import (
    PROTOCOL,
    check_explainer,
    explained_datasets,
    explanation_rows,
    read_explanations,
)
from lookalike.plan.fidelity import departures
from lookalike.plan.figures import figure_runs, read_figures
from lookalike.plan.inputs import Inputs
from lookalike.plan.mixture import MIXED_BY
from lookalike.plan.older import refuse_unnoticed
from lookalike.plan.origin import origin, rebuilding_options, terms_of
from lookalike.plan.rates import trial_seeds, trials
from lookalike.settings.layers import Tree
from lookalike.sources.code import code_digest

Runs = list[dict[str, Any]]


class Evidence:
    """Files and runs of what is reported.

    Args:
        inputs: what the call's rules read.
        recorded: whether Snakemake knows how a file was made.

    Raises:
        ValueError: for a claim, a figure or an explanation of ``params/`` that cannot be.
    """

    def __init__(self, inputs: Inputs, recorded: Callable[[str], bool]) -> None:
        self.inputs, self.plan, self._recorded = inputs, inputs.plan, recorded
        self.figures = read_figures(self.plan)
        self.explanations = read_explanations(self.plan)

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

    def figure(self, wildcards: Any) -> Tree:
        """Entry of a figure."""
        known = f"figures with data at scale {self.plan.scale}"
        require_known(known, wildcards.figure, self.figures)
        return self.figures[wildcards.figure]

    def files_of_figure(self, wildcards: Any) -> list[str]:
        """Files that a figure reads, in the order of its runs."""
        runs = figure_runs(self.plan, self.figure(wildcards))
        return [self.inputs.stored(run["reads"], run["recipe"], run["dataset"], run["seed"]) for run in runs]

    def runs_of_figure(self, wildcards: Any, input: Any) -> Runs:
        """The runs that a figure reads, without their files."""
        runs = figure_runs(self.plan, self.figure(wildcards))
        self.check_results(input, [(run["recipe"], run["dataset"]) for run in runs])
        return runs

    def threads_of_figure(self, wildcards: Any) -> int:
        """All cores for a measurement, so that nothing runs beside it."""
        return (os.cpu_count() or 1) if self.figure(wildcards).get("alone", False) else 1

    def code_of_figure(self, wildcards: Any) -> str:
        """Digest of the code that computes and draws a figure."""
        entry = self.figure(wildcards)
        layouts = sorted({run["layout"] for run in figure_runs(self.plan, entry)})
        named = [wildcards.figure, entry.get("options", {}), layouts]
        return code_digest(["lookalike.stages.figures:figures"], named)

    def neutral_embeddings(self, wildcards: Any) -> str:
        """Embeddings under which the triplets of a data set are drawn."""
        neutral = self.explanations["neutral"]
        self.plan.check_run(neutral["recipe"], wildcards.dataset)
        return self.inputs.stored("embeddings", neutral["recipe"], wildcards.dataset, neutral["seed"])

    def explained_model(self, wildcards: Any) -> str:
        """Model of a job that measures its explanations."""
        self.plan.refuse_unknown(recipe=wildcards.recipe, dataset=wildcards.dataset)
        check_explainer(self.plan, wildcards.recipe, wildcards.dataset, wildcards.explainer)
        return self.inputs.result_of("model")(wildcards)

    @property
    def protocol(self) -> Tree:
        """How all explanations are measured."""
        return {key: self.explanations[key] for key in PROTOCOL}

    def code_of_explanation(self, wildcards: Any) -> str:
        """Digest of the code that measures one method's explanations of a recipe's model."""
        sections = self.plan.deciding(wildcards.recipe, wildcards.dataset, "train")
        chosen = {"explained": [wildcards.explainer, *self.explanations["substitutes"]]}
        return recipe_digest(["lookalike.stages.explain:explain"], sections | chosen)

    def triplets_of_explanations(self, wildcards: Any) -> list[str]:
        """Files with the triplets, a data set after the other."""
        datasets = explained_datasets(self.plan, self.explanations)
        return [f"{self.inputs.results_folder}/explanations/{each.name}.triplets.csv" for each in datasets]

    def measures_of_explanations(self, wildcards: Any) -> list[str]:
        """Files with what was measured of the rows of the table, in their order."""
        return [self._measures(row) for row in explanation_rows(self.plan, self.explanations)]

    def metrics_of_explanations(self, wildcards: Any) -> list[str]:
        """Files with the metrics of the explained runs, in the order of the rows."""
        rows = explanation_rows(self.plan, self.explanations)
        return [self.inputs.stored("metrics", row["recipe"], row["dataset"], row["seed"]) for row in rows]

    def rows_of_explanations(self, wildcards: Any, input: Any) -> Runs:
        """Rows of the table of explanations, one for each seed."""
        rows = explanation_rows(self.plan, self.explanations)
        self.check_results(input.metrics, [(row["recipe"], row["dataset"]) for row in rows])
        return rows

    def _measures(self, row: dict[str, Any]) -> str:
        trained_on = self.plan.training_dataset(row["recipe"], row["dataset"])
        recipe = self.plan.shared("train", row["recipe"], trained_on)
        folder = f"{self.inputs.results_folder}/explanations/{recipe}/{row['dataset']}"
        return f"{folder}/{row['explainer']}-seed{row['seed']}.json"

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
