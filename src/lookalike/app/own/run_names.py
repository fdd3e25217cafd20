"""From a user's name of a run, or of a row of a table, to the runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lookalike.base.checks import require_known
from lookalike.base.paths import in_project, project_root
from lookalike.methods.method import FITTED
from lookalike.workflow.plan.origin import rebuilding_options
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import REFERENCE, committed_call, result_file
from lookalike.workflow.plan.scales import scale_and_selection
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.layers import Tree

FORMS = "RECIPE@DATASET[#SEED], TABLE:ROW[@DATASET][#SEED], or a file below results/"
KINDS = {"metrics": ".json", "segmentations": ".json", "models": ".safetensors"}  # of files that name a run


@dataclass(frozen=True)
class Results:
    """Results of one scale.

    Attributes:
        plan: plan of the scale.
        folder: ``results/<scale>`` of this clone or of another.
        options: what a call of Snakemake adds to mean this scale.
    """

    plan: Plan
    folder: Path
    options: str

    @property
    def committed(self) -> Path:
        """Folder of the committed ones of the same scale."""
        return self.folder.parent / Path(REFERENCE).name / self.folder.name

    def runs(self, recipe: str, dataset: str, seeds: Sequence[int]) -> list[Run]:
        """One recipe on one data set: the seeds, or all whose metrics are there, or else the first of the plan.

        Raises:
            ValueError: for a recipe that cannot run on the data set.
        """
        self.plan.check_run(recipe, dataset)
        file = result_file(self.plan, "metrics", recipe, dataset, 0)
        files = [path for folder in (self.folder, self.committed) for path in (folder / file).parent.glob("seed*.json")]
        there = sorted({int(path.stem.removeprefix("seed")) for path in files if path.stem[4:].isdigit()})
        return [Run(self, recipe, dataset, seed) for seed in seeds or there or self.plan.seeds[:1]]


@dataclass(frozen=True)
class Run:
    """A run, finished or not."""

    results: Results
    recipe: str
    dataset: str
    seed: int

    def file(self, kind: str) -> Path:
        """Of a kind of `lookalike.workflow.plan.results.result_file`, the committed one where there is only that."""
        file = result_file(self.results.plan, kind, self.recipe, self.dataset, self.seed)
        made, committed = self.results.folder / file, self.results.committed / file
        return committed if committed.is_file() and not made.is_file() else made

    def call(self, kind: str) -> str:
        """The call of Snakemake that makes a file."""
        file = result_file(self.results.plan, kind, self.recipe, self.dataset, self.seed)
        target = f"results/{self.results.plan.folder}/{file}"
        return f"`{in_project(f'snakemake --cores all {target}{self.results.options}')}` makes it"


class Names:
    """Reads names for one scale.

    Args:
        scale: name in ``params/scales``, ``None`` for that of ``params/config.yaml``.
        overlays: files of a user's own scale.
    """

    def __init__(self, scale: str | None, overlays: Sequence[Path] = ()) -> None:
        self._config: dict[str, Any] = configuration(scale, overlays)

    def runs(self, name: str) -> list[Run]:
        """The runs that a name means.

        Raises:
            ValueError: naming what is unknown and what is nearest to it.
        """
        if Path(name).suffix in KINDS.values():
            return self._of_file(Path(name))
        return self._of_row(name) if ":" in name else self._of_recipe(name)

    def model_file(self, name: str) -> Path:
        """File of the model of one run, by default of the first seed that is there.

        Args:
            name: ``RECIPE@DATASET`` or ``RECIPE@DATASET#SEED``.

        Raises:
            ValueError: naming what is unknown and what is nearest to it, or the call that makes the file; for a recipe
                whose embedding is mapped after training.
        """
        recipe, dataset, seeds = _parts(name)
        results = self._results()
        _known_recipe(results.plan, recipe, name)
        dataset = _dataset(results.plan, dataset, name)
        if (kept := results.plan.settings(recipe, dataset).embed.representation.name) in FITTED:
            raise ValueError(
                f"{name}: its embedding is {kept} by a map that no model file holds; `lookalike fit` writes one"
            )
        runs = results.runs(recipe, dataset, seeds or results.plan.seeds)
        there = [file for run in runs if (file := run.file("model")).is_file()]
        if not there:
            raise ValueError(f"{name} is not trained; {runs[0].call('model')}")
        return there[0]

    def _of_file(self, path: Path) -> list[Run]:
        parts = path.absolute().parts[-5:]
        stem = re.fullmatch(r"seed(\d+)", path.stem)
        if len(parts) < 5 or KINDS.get(parts[1]) != path.suffix or stem is None:
            form = f"<scale>/<{'|'.join(KINDS)}>/<recipe>/<dataset>/seed<seed>{path.suffix}"
            raise ValueError(f"{path}: a run's file is {form}")
        scale, _, recipe, dataset, _ = parts
        results = self._results(scale, path.absolute().parents[3])
        _known_recipe(results.plan, recipe, str(path))
        return results.runs(recipe, _dataset(results.plan, dataset, str(path)), [int(stem[1])])

    def _of_recipe(self, name: str) -> list[Run]:
        recipe, dataset, seeds = _parts(name)
        if not recipe or not dataset:
            raise ValueError(f"{name!r} names no run; a name is {FORMS}")
        results = self._results()
        _known_recipe(results.plan, recipe, name)
        return results.runs(recipe, _dataset(results.plan, dataset, name), seeds)

    def _of_row(self, name: str) -> list[Run]:
        of_row, dataset, seeds = _parts(name)
        table, _, label = of_row.partition(":")
        results = self._results()
        plan = results.plan
        require_known(f"{name}, table of scale {plan.scale}", table, [*plan.known_tables, *plan.sweeps])
        require_known(f"{name}, row of {table}", label, [row.label for row in plan.table(table).rows])
        # A table of whatever data a call has may hold rows that cannot run on all of them.
        asked = Plan({**self._config, "only": [_dataset(plan, dataset, name)]}) if dataset else plan
        try:
            runs = asked.runs_of(table)
        except ValueError as error:
            if dataset:
                raise
            raise ValueError(f"{error}; a name with one data set is {name}@{next(iter(plan.datasets))}") from None
        runs = runs[runs["label"] == label][["recipe", "dataset"]].drop_duplicates()
        if runs.empty:
            where = f"data other than {dataset}" if dataset else "no data"
            raise ValueError(f"{name}: scale {plan.scale} runs this row on {where}")
        return [run for row in runs.to_dict("records") for run in results.runs(row["recipe"], row["dataset"], seeds)]

    @cache  # noqa: B019  (one object per call of the command)
    def _results(self, name: str | None = None, folder: Path | None = None) -> Results:
        """Results of a folder, by its name and where it lies; by default of the scale that was asked for."""
        config = self._config
        if name is not None:
            scale, selection = scale_and_selection(name)
            if scale != config.get("name", config["scale"]):
                config = _configuration(scale, folder)
            config = {**config, "selection": selection}
        plan = Plan(config)
        return Results(plan, folder or project_root() / "results" / plan.folder, rebuilding_options(plan))


def _configuration(scale: str, folder: Path | None) -> Tree:
    """Configuration of a folder's scale: of the call that left committed results of its name, else of the scale's file.

    Raises:
        ValueError: for a name that is neither.
    """
    if (config := committed_call(scale)) is not None:
        return config
    scales = sorted(path.stem for path in (project_root() / "params" / "scales").glob("*.yaml"))
    require_known(f"{folder}, scale (one of your own is given by --configfile)", scale, scales)
    return configuration(scale, [])


def _parts(name: str) -> tuple[str, str, list[int]]:
    """The name before ``@``, the data set after it, and the seed after ``#`` if there is one."""
    rest, mark, seed = name.partition("#")
    if mark and not seed.isdecimal():
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
