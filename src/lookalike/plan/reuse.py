"""Stored results that a call would not make the same today: evaluations that are kept or not, rows that are marked.

Their models and embeddings are large and stay where they were made. Snakemake knows nothing of such a file, and would
make all that is behind it again, once anything of that is newer; so a study could not go on on another machine.

Rows that share a training are compared pair by pair, so they are kept together or not at all: where one of them is
missing, or the model is there, all are made of the model of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from lookalike.files import read_json
from lookalike.paths import project_root
from lookalike.plan.inputs import Inputs
from lookalike.plan.results import Stored, result_pattern, scoring_of, training_of

# Rules that make what an evaluation rests on, and folders of their results: who asks for one again wants others.
BEHIND = ("download", "split", "pictures", "hold_out", "select", "train", "embed", "evaluate")
FOLDERS = ("models", "embeddings", "metrics")
SCRIPT = "workflow/scripts/evaluate.py"
# What can differ, by the digest that tells it; the first is the one that results of any age have.
MADE_BY = {
    "code": "older code",
    "settings": "other settings",
    "scored_by": "other code of embedding and scoring",
    "reads": "another description of the data set",
    "data": "another split",
    "weights": "other weights",
}


def differs(metrics: Mapping[str, Any], today: Mapping[str, Any]) -> str:
    """What made metrics otherwise than a call would today, as far as they say; empty where nothing did.

    Args:
        metrics: content of their file.
        today: digests of what decides them now, some of `MADE_BY`.
    """
    for key, words in MADE_BY.items():
        known = key == "code" or key in metrics
        if key in today and known and metrics.get(key, "") != today[key]:
            return f"{words}, {metrics.get(key) or 'without a digest'}, not today's {today[key]}"
    return ""


def asks_again(named: Iterable[str]) -> bool:
    """Whether rules or files that a call asks for again, whatever there is, are of evaluations or behind them."""
    return any(name in BEHIND or {*PurePath(name).parts[:-1]} & {*FOLDERS} for name in named)


class Brought:
    """Which evaluations of a call need nothing behind them.

    Args:
        inputs: what the call's rules read.
        makes_anew: whether the call asks for evaluations again, as `asks_again` says.
    """

    def __init__(self, inputs: Inputs, makes_anew: Callable[[], bool] = lambda: False) -> None:
        self.inputs, self.plan, self._makes_anew = inputs, inputs.plan, makes_anew
        self._sharing: dict[Stored, set[Stored]] = {}
        self._fits: dict[Stored, bool] = {}

    def behind(self, kind: str) -> Callable[[Any], str | list[str]]:
        """As `Inputs.result_of`, for a job that evaluates: nothing where its result is kept."""
        made_here = self.inputs.result_of(kind)

        def file(wildcards: Any) -> str | list[str]:
            return [] if self.is_kept(wildcards) else made_here(wildcards)

        return file

    def is_kept(self, wildcards: Any) -> bool:
        """Whether a job's result and those that share its training came from elsewhere, and fit."""
        own = Stored(wildcards.recipe, wildcards.dataset, int(wildcards.seed))
        if not self._file("evaluation", own).is_file() or self._makes_anew():
            return False
        training = training_of(self.plan, *own)
        if self._file("model", training).is_file():
            return False
        if not all(self._is_fit(each) for each in {own, *self._evaluations().get(training, ())}):
            return False
        for kind in ("evaluation", "classes"):
            _renew(self._file(kind, own))
        return True

    def _is_fit(self, run: Stored) -> bool:
        if run not in self._fits:
            metrics = self._file("evaluation", run)
            there = metrics.is_file() and self._file("classes", run).is_file()
            self._fits[run] = there and self._came_along(metrics) and self._is_of_today(run)
        return self._fits[run]

    def _is_of_today(self, run: Stored) -> bool:
        metrics, today = read_json(self._file("evaluation", run)), self.inputs.today(run.recipe, run.dataset)
        return today.keys() <= metrics.keys() and not differs(metrics, today)

    def _came_along(self, file: Path) -> bool:
        return self.inputs.made_of(str(file.relative_to(project_root()))) is None

    def _evaluations(self) -> dict[Stored, set[Stored]]:
        """By training the evaluations that the tables of this call make of it."""
        if not self._sharing:
            for run in self.plan.runs[["recipe", "dataset", "seed"]].drop_duplicates().itertuples(index=False):
                recipe, dataset, seed = str(run[0]), str(run[1]), int(run[2])
                if self.plan.last_stage(recipe) == "evaluate":
                    training = training_of(self.plan, recipe, dataset, seed)
                    self._sharing.setdefault(training, set()).add(scoring_of(self.plan, recipe, dataset, seed))
        return self._sharing

    def _file(self, kind: str, run: Stored) -> Path:
        return project_root() / self.inputs.results_folder / result_pattern(kind).format(**run._asdict())


def _renew(result: Path) -> None:
    """Give a kept result the present time, unless it is newer than the script that would make it.

    A checkout gives files the times at which it writes them, and Snakemake takes the older of two for what is older.

    Raises:
        ValueError: if the file is not ours to do so.
    """
    script = project_root() / SCRIPT
    if result.stat().st_mtime <= script.stat().st_mtime:
        try:
            result.touch()
        except OSError as error:
            raise ValueError(
                f"{result}: is older than {SCRIPT}, and its time cannot be set ({error.strerror}); copy the results "
                "to a folder of your own"
            ) from None


def is_older(run: Mapping[str, Any], metrics: Mapping[str, Any]) -> bool:
    """Whether metrics come from a training by other code than today's.

    Args:
        run: row of a run with ``code_today``, the digest of the code that would train it now.
        metrics: content of its metrics file.
    """
    return bool(metrics.get("code", "") != run.get("code_today", metrics.get("code", "")))


def refuse_unnoticed(runs: Iterable[Mapping[str, Any]], unrecorded: Iterable[str]) -> None:
    """Refuse finished metrics of older code or other settings that Snakemake takes for today's.

    Snakemake makes results again whose code or settings have changed since it made them. Of files that it has not
    made, copied from another folder say, it knows nothing, and keeps them.

    Args:
        runs: rows of runs with ``metrics_file``, ``today``, digests that `lookalike.plan.reuse.differs` holds them
            against, and the ``options`` of a rebuilding call.
        unrecorded: metrics files that exist and that Snakemake has no record of.

    Raises:
        ValueError: naming the first file and the lines that make all of them again, or keep them.
    """
    of_file = {run["metrics_file"]: run for run in runs}
    content = {file: read_json(file) for file in unrecorded if Path(file).is_file()}
    differing = {file: said for file, metrics in content.items() if (said := differs(metrics, of_file[file]["today"]))}
    if differing:
        (first, said), others = next(iter(differing.items())), len(differing) - 1
        line = f"snakemake {' '.join(differing)} --cores all{of_file[first]['options']}"
        raise ValueError(
            f"{first}{f' (and {others} more)' if others else ''}: made by {said}, and "
            f"Snakemake has no record of it. Make anew: `{line} --forcerun train`. Keep, if no number changed: "
            f"`{line} --touch`"
        )
