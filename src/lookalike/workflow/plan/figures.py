"""Figures and the runs that they read: ``params/figures.yaml``, checked before any job starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from lookalike.base.checks import require_known
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.scales import Dataset
from lookalike.workflow.settings.files import dataset_names, read_entries
from lookalike.workflow.settings.layers import Tree, merge
from lookalike.workflow.settings.model import checked_entries
from lookalike.workflow.settings.pages import Figure, FigureRuns, PlannedFigure
from lookalike.workflow.settings.sources.code import code_digest, lookup

FILE = "params/figures.yaml"


@dataclass(frozen=True)
class FigureRun:
    """A run that a figure reads: ``lookalike.workflow.report.figures.parts.form.Run`` without its file."""

    recipe: str
    published: str | None
    dataset: str
    seed: int
    reads: str
    place: Tree
    root: str
    manifest: str
    layout: str


class Figures:
    """Figures of a call, and the files that they read.

    Args:
        evidence: of the call.

    Attributes:
        entries: as `read_figures` gives them.

    Raises:
        ValueError: as `read_figures`.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.entries = read_figures(evidence.plan)
        self._runs = cache(lambda figure: figure_runs(evidence.plan, self.entries[figure]))

    def entry(self, wildcards: Any) -> PlannedFigure:
        """A figure."""
        known = f"figures with data at scale {self._evidence.plan.scale}"
        require_known(known, wildcards.figure, self.entries)
        return self.entries[wildcards.figure]

    def files(self, wildcards: Any) -> list[str]:
        """Files that a figure reads, in the order of its runs."""
        self.entry(wildcards)  # which there must be
        stored, runs = self._evidence.inputs.stored, self._runs(wildcards.figure)
        return [stored(run.reads, run.recipe, run.dataset, run.seed) for run in runs]

    def runs(self, wildcards: Any, input: Any) -> list[Tree]:
        """The runs that a figure reads, without their files."""
        runs = self._runs(wildcards.figure)
        self._evidence.check_results(input, [(run.recipe, run.dataset, run.seed) for run in runs])
        return [asdict(run) for run in runs]

    def threads(self, wildcards: Any) -> int:
        """All cores for a measurement, so that nothing runs beside it."""
        return (os.cpu_count() or 1) if self.entry(wildcards).alone else 1

    def code(self, wildcards: Any) -> str:
        """Digest of the code that computes and draws a figure."""
        entry = self.entry(wildcards)
        layouts = sorted({run.layout for run in self._runs(wildcards.figure)})
        named = [wildcards.figure, entry.options, layouts]
        return code_digest(["lookalike.workflow.stages.figures:figures"], named)


def read_figures(plan: Plan) -> dict[str, PlannedFigure]:
    """Figures of this scale, by name: those that it names, else those that read no run or whose data sets it all has.

    Raises:
        ValueError: naming file, key and what would be right, for a figure that nothing draws, an unknown recipe, sweep
            or published data set, also in figures without data at this scale; for one that the scale names, and none
            of whose data sets it has.
    """
    figures = _with_those_of_the_scale(plan)
    kinds = lookup("lookalike.workflow.report.figures", "FIGURES")
    datasets = dataset_names()
    present = {dataset.stands_for for dataset in plan.datasets.values()}
    for name, figure in figures.items():
        require_known(f"{FILE}, {name}", name, kinds)
        for number, entry in enumerate(figure.runs):
            where = f"{FILE}, {name}.runs.{number}"
            if entry.sweep is None:
                require_known(f"{where}.recipe", entry.recipe, plan.recipe_names)
            else:
                require_known(f"{where}.sweep", entry.sweep, plan.sweeps)
                _check_narrowed(plan, entry, entry.sweep, where)
            for dataset in _datasets(plan, entry):
                require_known(f"{where}.datasets", dataset, datasets)
    wanted = {
        name: {dataset for entry in figure.runs for dataset in _datasets(plan, entry)}
        for name, figure in figures.items()
    }
    for name in plan.figures:
        if wanted[name] and not wanted[name] & present:
            there = ", ".join(sorted(each for each in present if each))
            raise ValueError(
                f"{plan.scale_file}, figures.{name}: is of {', '.join(sorted(wanted[name]))}; this scale has {there}"
            )
    names = list(plan.figures) or [name for name in figures if wanted[name] <= present]
    # More seeds where the scale gives them, and the call does not name several for all.
    seeds = {name: {"seeds": [*range(many)]} for name, many in plan.figure_seeds.items() if len(plan.seeds) == 1}
    return {name: PlannedFigure(**figures[name].dump() | seeds.get(name, {})) for name in names}


def _with_those_of_the_scale(plan: Plan) -> dict[str, Figure]:
    figures = read_entries(FILE, Figure)
    place = f"{plan.scale_file}, figures"
    for name in plan.figures:
        require_known(place, name, figures)
    for name in plan.figure_seeds:
        require_known(f"{plan.scale_file}, figure_seeds", name, figures)
    if plan.figures:
        stated = {name: figure.dump() for name, figure in figures.items()}
        return checked_entries(Figure, merge(stated, plan.figures), place)
    return figures


def figure_runs(plan: Plan, figure: PlannedFigure) -> list[FigureRun]:
    """The runs that a figure reads.

    Raises:
        ValueError: for a recipe that cannot run on a data set of this scale, or several that stand for a published one.
    """
    runs = [
        FigureRun(
            recipe,
            dataset.stands_for,
            dataset.name,
            seed,
            entry.reads,
            place,
            dataset.root,
            dataset.manifest_of(plan.half_of(dataset.name, seed)),
            dataset.about.layout,
        )
        for entry in figure.runs
        for recipe, dataset, place in _rows(plan, entry)
        for seed in figure.seeds or plan.several_seeds
    ]
    for run in runs:
        plan.check_run(run.recipe, run.dataset)
    return runs


def _rows(plan: Plan, entry: FigureRuns) -> Iterator[tuple[str, Dataset, Tree]]:
    """Recipe, data set and place in the figure of everything that an entry names, once per data set of this scale."""
    present = [each for name in _datasets(plan, entry) for each in _stand_ins(plan, name)]
    if entry.sweep is None:
        values_of: dict[str, Tree] = {entry.recipe or "": {}}
    else:
        possible = set(plan.runs_of(entry.sweep)["recipe"])
        points = [point for point in plan.sweeps[entry.sweep].points if point.name in possible]
        values_of = {point.name: point.at for point in points if entry.at.items() <= point.at.items()}
    for recipe, values in values_of.items():
        for dataset in present:
            sections = plan.deciding(recipe, dataset.name)
            settings = {column: _setting(sections, key) for column, key in entry.settings.items()}
            yield recipe, dataset, {**values, **settings, **entry.place}


def _stand_ins(plan: Plan, published: str) -> list[Dataset]:
    """The data set that stands for a published one, if there is one: curves of two would be taken for one."""
    found = [each for each in plan.datasets.values() if each.stands_for == published]
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise ValueError(
            f"{plan.scale_file}, datasets: {names} stand for {published}, and a figure shows one. "
            "Leave stands_for out of the others"
        )
    return found


def _check_narrowed(plan: Plan, entry: FigureRuns, sweep: str, where: str) -> None:
    """Refuse a part of a sweep that is not there."""
    for dataset in entry.datasets:
        require_known(f"{where}.datasets", dataset, plan.sweeps[sweep].table.datasets)
    points = plan.sweeps[sweep].points
    if not any(entry.at.items() <= point.at.items() for point in points):
        raise ValueError(f"{where}.at: sweep {sweep} has no point at {entry.at}; one is {points[0].at}")


def _datasets(plan: Plan, entry: FigureRuns) -> list[str]:
    """Published data sets of an entry."""
    return entry.datasets or (plan.sweeps[entry.sweep].table.named_datasets if entry.sweep else [])


def _setting(sections: Tree, key: str) -> Any:
    value: Any = sections
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            raise ValueError(f"{FILE}: recipes have no setting {key!r}; {part!r} is missing")
        value = value[part]
    return value
