"""From what a user calls a run, or a row of a table, to the runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lookalike.checks import require_known
from lookalike.command.compare.runs import Results, Run, UnfinishedError, tracked_run
from lookalike.paths import project_root
from lookalike.plan.origin import rebuilding_options
from lookalike.plan.plan import Plan
from lookalike.plan.results import result_file
from lookalike.plan.scales import scale_and_selection
from lookalike.settings.call import configuration
from lookalike.tracking import copy_of

FORMS = "RECIPE@DATASET[#SEED], TABLE:ROW[@DATASET][#SEED], a file below results/, or the id of an MLflow run"
KINDS = {"metrics": ".json", "segmentations": ".json", "models": ".safetensors"}  # of files that name a run


@dataclass
class Side:
    """Runs that one name means.

    Attributes:
        name: the name as the user wrote it.
        runs: its finished runs.
        unfinished: a line for each of the others.
    """

    name: str
    runs: list[Run] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def add(self, results: Results, recipe: str, dataset: str, seeds: list[int]) -> None:
        """Take up one recipe on one data set: the seeds, or all that are there, or else the first of the plan."""
        for seed in seeds or results.seeds(recipe, dataset) or results.plan.seeds[:1]:
            try:
                self.runs.append(results.run(recipe, dataset, seed))
            except UnfinishedError as error:
                self.unfinished.append(str(error))


class Names:
    """Reads names for one scale.

    Args:
        scale: name in ``params/scales``, ``None`` for that of ``params/config.yaml``.
        overlays: files of a user's own scale.
    """

    def __init__(self, scale: str | None, overlays: Sequence[Path] = ()) -> None:
        self._config: dict[str, Any] = configuration(scale, overlays)

    def side(self, name: str) -> Side:
        """The runs that a name means.

        Raises:
            ValueError: naming what is unknown and what is nearest to it.
        """
        side = Side(name)
        if re.fullmatch(r"[0-9a-f]{32}", name):
            try:
                side.runs.append(tracked_run(copy_of(name)))
            except UnfinishedError as error:
                side.unfinished.append(str(error))
        elif Path(name).suffix in KINDS.values():
            self._add_file(side, Path(name))
        elif ":" in name:
            self._add_row(side, name)
        else:
            self._add_recipe(side, name)
        return side

    def model_file(self, name: str) -> Path:
        """File of the model of one run, by default of the first seed that is there.

        Args:
            name: ``RECIPE@DATASET`` or ``RECIPE@DATASET#SEED``.

        Raises:
            ValueError: naming what is unknown and what is nearest to it, or the call that makes the file.
        """
        recipe, dataset, seeds = _parts(name)
        results = self._results()
        _known_recipe(results.plan, recipe, name)
        dataset = _dataset(results.plan, dataset, name)
        results.plan.check_run(recipe, dataset)
        files = [result_file(results.plan, "model", recipe, dataset, seed) for seed in seeds or results.plan.seeds]
        there = [results.folder / file for file in files if (results.folder / file).is_file()]
        if not there:
            target = f"results/{results.plan.folder}/{files[0]}"
            raise ValueError(f"{name} is not trained; `snakemake --cores all {target}{results.options}` makes it")
        return there[0]

    def _add_file(self, side: Side, path: Path) -> None:
        parts = path.absolute().parts[-5:]
        stem = re.fullmatch(r"seed(\d+)", path.stem)
        if len(parts) < 5 or KINDS.get(parts[1]) != path.suffix or stem is None:
            form = f"<scale>/<{'|'.join(KINDS)}>/<recipe>/<dataset>/seed<seed>{path.suffix}"
            raise ValueError(f"{path}: a run's file is {form}")
        scale, _, recipe, dataset, _ = parts
        results = self._results(scale, path.absolute().parents[3])
        _known_recipe(results.plan, recipe, str(path))
        side.add(results, recipe, _dataset(results.plan, dataset, str(path)), [int(stem[1])])

    def _add_recipe(self, side: Side, name: str) -> None:
        recipe, dataset, seeds = _parts(name)
        if not recipe or not dataset:
            raise ValueError(f"{name!r} names no run; a name is {FORMS}")
        results = self._results()
        _known_recipe(results.plan, recipe, name)
        side.add(results, recipe, _dataset(results.plan, dataset, name), seeds)

    def _add_row(self, side: Side, name: str) -> None:
        of_row, dataset, seeds = _parts(name)
        table, _, label = of_row.partition(":")
        results = self._results()
        plan = results.plan
        require_known(f"{name}, table of scale {plan.scale}", table, [*plan.known_tables, *plan.sweeps])
        require_known(f"{name}, row of {table}", label, [row["label"] for row in plan.table(table)["rows"]])
        runs = plan.runs_of(table)
        runs = runs[runs["label"] == label][["recipe", "dataset"]].drop_duplicates()
        if dataset:
            runs = runs[runs["dataset"] == _dataset(plan, dataset, name)]
        if runs.empty:
            where = f"data other than {dataset}" if dataset else "no data"
            raise ValueError(f"{name}: scale {plan.scale} runs this row on {where}")
        for run in runs.to_dict("records"):
            side.add(results, run["recipe"], run["dataset"], seeds)

    @cache  # noqa: B019  (one object per call of the command)
    def _results(self, name: str | None = None, folder: Path | None = None) -> Results:
        """Results of a folder, by its name and where it lies; by default of the scale that was asked for."""
        config = self._config
        if name is not None:
            scale, selection = scale_and_selection(name)
            if scale != config.get("name", config["scale"]):
                scales = sorted(path.stem for path in (project_root() / "params" / "scales").glob("*.yaml"))
                require_known(f"{folder}, scale (one of your own is given by --configfile)", scale, scales)
                config = configuration(scale, [])
            config = {**config, "selection": selection}
        plan = Plan(config)
        return Results(plan, folder or project_root() / "results" / plan.folder, rebuilding_options(plan))


def _parts(name: str) -> tuple[str, str, list[int]]:
    """What stands before ``@``, the data set after it, and the seed after ``#`` if there is one."""
    rest, mark, seed = name.partition("#")
    if mark and not seed.isdigit():
        raise ValueError(f"{name}: {seed!r} after # is no seed; a name is {FORMS}")
    first, _, dataset = rest.partition("@")
    return first, dataset, [int(seed)] if mark else []


def _known_recipe(plan: Plan, recipe: str, where: str) -> None:
    points = (point.name for sweep in plan.sweeps.values() for point in sweep.points)
    require_known(f"{where}, recipe", recipe, [*plan.recipe_names, *points])


def _dataset(plan: Plan, name: str, where: str) -> str:
    """A data set of the scale, which may also be called by the published one that it stands for."""
    standing = {dataset.stands_for: dataset.name for dataset in plan.datasets.values() if dataset.stands_for}
    require_known(f"{where}, data set of scale {plan.scale}", name, {*plan.datasets, *standing})
    return name if name in plan.datasets else standing[name]
