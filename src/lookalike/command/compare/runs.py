"""A finished run as it is compared: flat parameters, facts about it, metrics; from ``results/`` or from MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lookalike.files import about_model, read_json
from lookalike.metrics.names import CHECKPOINTS
from lookalike.plan.plan import Plan
from lookalike.plan.recipes import STAGES
from lookalike.plan.results import result_file, scoring_of
from lookalike.tracking import IDENTITY, AwayError, Copy, copies_of, flat, is_tracked, metric_name, one_line

# Tags of MLflow that are facts about a run.
TAGS = ("commit", "hardware", "torch", "host")


class UnfinishedError(Exception):
    """A run whose metrics are not there; the message is one line with the call that makes them."""


@dataclass(frozen=True)
class Run:
    """One finished run.

    Attributes:
        recipe: name of the recipe; that of the run in MLflow, or of the file, where it was named by those.
        dataset: what it was scored on.
        seed: seed of everything random.
        parameters: dotted keys of all sections, values as text.
        facts: what else is known of how it came about.
        metrics: fractions by name, for each of `CHECKPOINTS`.
        identity: the tags by which MLflow finds it.
        id: identifier of the run in MLflow, empty if there is none.
    """

    recipe: str
    dataset: str
    seed: int
    parameters: dict[str, str]
    facts: dict[str, str]
    metrics: dict[str, dict[str, float]]
    identity: dict[str, str] = field(default_factory=dict)
    id: str = ""


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

    def run(self, recipe: str, dataset: str, seed: int) -> Run:
        """A run from its files.

        Raises:
            UnfinishedError: if its metrics are not there.
            ValueError: for a recipe that cannot run on the data set.
        """
        self.plan.check_run(recipe, dataset)
        metrics = result_file(self.plan, "metrics", recipe, dataset, seed)
        if not (self.folder / metrics).is_file():
            target = f"results/{self.plan.folder}/{metrics}"
            raise UnfinishedError(
                f"{recipe}@{dataset}#{seed} is not finished; `snakemake --cores all {target}{self.options}` makes it"
            )
        measured = read_json(self.folder / metrics)
        training = about_model(self.folder / result_file(self.plan, "model", recipe, dataset, seed))
        settings = self.plan.deciding(recipe, dataset)
        used = {**settings, "train": training.get("settings", settings["train"])}
        facts = {key: value for key, value in {**training, **measured}.items() if key not in ("settings", *CHECKPOINTS)}
        if flat(used) != flat(settings):
            facts["trained with"] = "other settings than params/ holds now"
        stored = scoring_of(self.plan, recipe, dataset, seed)
        identity = (self.plan.folder, stored.recipe, stored.dataset, str(seed))
        return Run(
            recipe,
            dataset,
            seed,
            flat({section: values for section, values in used.items() if values}),
            flat(facts),
            {checkpoint: _numbers(measured[checkpoint]) for checkpoint in CHECKPOINTS},
            dict(zip(IDENTITY, identity, strict=True)),
        )

    def seeds(self, recipe: str, dataset: str) -> list[int]:
        """Seeds whose metrics are there."""
        files = (self.folder / result_file(self.plan, "metrics", recipe, dataset, 0)).parent.glob("seed*.json")
        return sorted(int(path.stem.removeprefix("seed")) for path in files)


def tracked_run(copy: Copy) -> Run:
    """A run from MLflow alone.

    Raises:
        ValueError: if it is no run of this project.
        UnfinishedError: if it was not scored.
    """
    if missing := [key for key in IDENTITY if key not in copy.tags]:
        raise ValueError(f"MLflow run {copy.id} has no tag {missing[0]!r}: it is no run of this project")
    scale, recipe, dataset, seed = (copy.tags[key] for key in IDENTITY)
    mark = metric_name("@")
    scores: dict[str, dict[str, float]] = {checkpoint: {} for checkpoint in CHECKPOINTS}
    for name, value in copy.metrics.items():
        checkpoint, _, metric = name.partition("/")
        if checkpoint in scores:
            scores[checkpoint][metric.replace(mark, "@")] = value
    if not all(scores.values()):
        raise UnfinishedError(
            f"MLflow run {copy.id} is not finished; `snakemake --cores all "
            f"results/{scale}/metrics/{recipe}/{dataset}/seed{seed}.json --config scale={scale}` makes it"
        )
    settings = {key: value for key, value in copy.parameters.items() if key.partition(".")[0] in STAGES}
    facts = {key: value for key, value in copy.parameters.items() if key not in settings}
    facts |= {key: copy.tags[key] for key in ("code", *TAGS) if key in copy.tags}
    identity = {key: copy.tags[key] for key in IDENTITY}
    return Run(recipe, dataset, int(seed), settings, facts, scores, identity, copy.id)


def with_ids(runs: list[Run]) -> list[Run]:
    """The runs with what MLflow adds: their ids, and the commit and machine they were made with.

    Where nothing is tracked, or the server fails, they come back as they are.
    """
    if not is_tracked():
        return runs
    try:
        copies = copies_of([run.identity for run in runs])
    except AwayError as error:
        print(f"{error}; no ids")
        return runs
    except Exception as error:  # whatever a server may raise; the results do not depend on it
        print(f"{one_line(error)}; no ids")
        return runs
    return [run if copy is None else _with_copy(run, copy) for run, copy in zip(runs, copies, strict=True)]


def _with_copy(run: Run, copy: Copy) -> Run:
    known = {key: copy.tags[key] for key in TAGS if key in copy.tags}
    return replace(run, facts={**known, **run.facts}, id=copy.id)


def _numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in scores.items()}
