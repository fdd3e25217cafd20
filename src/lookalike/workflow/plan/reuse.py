"""Committed evaluations that a call reads in place of making them, and marks of other code or settings.

They lie below ``results/reference/<scale>``, without their models, and no call writes there but one of
the target ``adopt``. So a study goes on on another machine from what its repository holds.

Rows that share a training are compared pair by pair, so they are read there together or not at all: where one of them
is missing, or is made here, all are made of the model of this machine.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from lookalike.base.paths import project_root
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import REFERENCE, Stored, result_pattern, scoring_of, training_of
from lookalike.workflow.running.records import decided_by

# What can differ, by the digest that tells it; the first is the one that results of any age have.
MADE_BY = {
    "code": "older code",
    "settings": "other settings",
    "scored_by": "other code of embedding and scoring",
    "reads": "another description of the data set",
    "data": "another split",
    "weights": "other weights",
}
OF_CODE = ("code", "scored_by")
EQUAL_CODE = "results/equal_code.csv"


class Equal(NamedTuple):
    """A digest of code that committed metrics name, and one of today's that computes the same as far as the gate tells.

    Attributes:
        before: named by committed metrics.
        after: today's, empty where numbers have moved.
        commit: at which the gate said so.
    """

    before: str
    after: str
    commit: str


def read_equal() -> tuple[Equal, ...]:
    """Rows of ``results/equal_code.csv``, none where there is no such file.

    Raises:
        ValueError: for a file of another form.
    """
    path = project_root() / EQUAL_CODE
    return _read_equal(path, path.stat().st_mtime_ns) if path.is_file() else ()


@cache
def _read_equal(path: Path, changed: int) -> tuple[Equal, ...]:
    lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    if lines[:1] != [list(Equal._fields)] or any(len(line) != len(Equal._fields) for line in lines):
        raise ValueError(f"{path}: a first line {','.join(Equal._fields)} and as many values in each other are right")
    return tuple(Equal(*line) for line in lines[1:])


def differs(said: Mapping[str, str], today: Mapping[str, str]) -> str:
    """First known cause that sets metrics apart from those of a call today; empty where there is none.

    Code that `read_equal` knows to compute the same is no other code.

    Args:
        said: what made them, as `decided_by` gives it.
        today: digests of what decides them now, some of `MADE_BY`.
    """
    equal = {(each.before, each.after) for each in read_equal()}
    for key, words in MADE_BY.items():
        known = key == "code" or key in said
        is_equal = key in OF_CODE and (said.get(key), today.get(key)) in equal
        if key in today and known and said.get(key) != today[key] and not is_equal:
            return f"{words}, {said.get(key) or 'without a digest'}, not today's {today[key]}"
    return ""


class Reference:
    """Evaluations of a call that are read from the committed ones.

    Args:
        plan: what the call runs.
        today: digests of what decides metrics now, by recipe, data set and seed.
    """

    def __init__(self, plan: Plan, today: Callable[[str, str, int], Mapping[str, str]]) -> None:
        self.folder = f"{REFERENCE}/{plan.folder}"
        self._plan, self._today = plan, today
        self._sharing: dict[Stored, set[Stored]] = {}
        self._fits: dict[Stored, bool] = {}

    @cached_property
    def is_there(self) -> bool:
        """Whether anything is committed, which most scales need no plan to deny."""
        return (project_root() / self.folder / "metrics").is_dir()

    def has(self, recipe: str, dataset: str, seed: int) -> bool:
        """Whether the evaluations of a run and of those that share its training are there and fit, none made here."""
        if not self.is_there or self._plan.last_stage(recipe) != "evaluate":
            return False
        own = scoring_of(self._plan, recipe, dataset, seed)
        if not self._file(self.folder, "evaluation", own).is_file():
            return False
        sharing = self._evaluations().get(training_of(self._plan, *own), set())
        return all(self._is_fit(each) for each in {own, *sharing})

    def _is_fit(self, run: Stored) -> bool:
        if run not in self._fits:
            files = [self._file(self.folder, kind, run) for kind in ("evaluation", "classes")]
            made_here = self._file(f"results/{self._plan.folder}", "evaluation", run).is_file()
            self._fits[run] = not made_here and all(file.is_file() for file in files) and self._is_of_today(run)
        return self._fits[run]

    def _is_of_today(self, run: Stored) -> bool:
        said, today = decided_by(self._file(self.folder, "evaluation", run)), self._today(*run)
        return today.keys() <= said.keys() and not differs(said, today)

    def _evaluations(self) -> dict[Stored, set[Stored]]:
        """By training the evaluations that the tables of this call make of it."""
        if not self._sharing:
            for run in self._plan.runs[["recipe", "dataset", "seed"]].drop_duplicates().itertuples(index=False):
                recipe, dataset, seed = str(run[0]), str(run[1]), int(run[2])
                if self._plan.last_stage(recipe) == "evaluate":
                    training = training_of(self._plan, recipe, dataset, seed)
                    self._sharing.setdefault(training, set()).add(scoring_of(self._plan, recipe, dataset, seed))
        return self._sharing

    def _file(self, folder: str, kind: str, run: Stored) -> Path:
        return project_root() / folder / result_pattern(kind).format(**run._asdict())
