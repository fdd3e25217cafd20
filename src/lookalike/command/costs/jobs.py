"""The jobs of a call: each training, embedding and evaluation once, however many runs share it; and their steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from lookalike.plan.plan import Plan
from lookalike.plan.sizes import Composition
from lookalike.settings.layers import canonical

STAGES = ("train", "embed", "evaluate", "segment")  # of the jobs that work with a model


class Run(NamedTuple):
    """What a table cell is averaged over."""

    recipe: str
    dataset: str
    seed: int


class Job(NamedTuple):
    """One job with a model, named as its result is stored."""

    stage: str
    recipe: str
    dataset: str
    seed: int


def distinct_runs(plan: Plan) -> list[Run]:
    """Recipe x data set x seed, each once however many tables show it."""
    rows = plan.runs[["recipe", "dataset", "seed"]].to_dict("records")
    return list(dict.fromkeys(Run(row["recipe"], row["dataset"], row["seed"]) for row in rows))


def distinct_jobs(plan: Plan) -> list[Job]:
    """The jobs behind all runs, each once however many runs share its result."""
    return list(dict.fromkeys(job for run in distinct_runs(plan) for job in _behind(plan, run)))


def job_counts(plan: Plan) -> dict[str, int]:
    """How often ``snakemake tables`` runs each rule where no result exists yet, the target itself included."""
    jobs = distinct_jobs(plan)
    others = strangers_of(plan, jobs)
    copied = {*others, *(job.dataset for job in jobs if job.stage in ("train", "embed"))}
    datasets = others | {job.dataset for job in jobs}
    counts = {"download": sum(plan.datasets[name].is_downloaded for name in datasets), "split": len(datasets)}
    counts["pictures"] = sum(plan.picture_cache_of(dataset) is not None for dataset in copied)
    counts |= {stage: sum(job.stage == stage for job in jobs) for stage in STAGES}
    for rule, ways in (("episodes", 1), ("two_way_episodes", 2)):
        counts[rule] = len({job.dataset for job in jobs if job.stage == "segment" and _ways(plan, job) == ways})
    return counts | {"table": len(plan.table_names), "tables_page": 1, "tables": 1}


def strangers_of(plan: Plan, jobs: list[Job]) -> set[str]:
    """Data sets whose pictures replace others in some of these trainings."""
    filling = (plan.strangers(job.recipe, job.dataset) for job in jobs if job.stage == "train")
    return {each.name for each in filling if each is not None}


def _ways(plan: Plan, job: Job) -> int:
    return int(plan.deciding(job.recipe, job.dataset)["segment"]["ways"])


def _behind(plan: Plan, run: Run) -> Iterator[Job]:
    recipe, dataset, seed = run
    trained_on = plan.training_dataset(recipe, dataset)
    yield Job("train", plan.shared("train", recipe, trained_on), trained_on, seed)
    last = plan.last_stage(recipe)
    for stage in ("embed", "evaluate") if last == "evaluate" else (last,):
        yield Job(stage, plan.shared(stage, recipe, dataset), dataset, seed)


def training_steps(train: Mapping[str, Any], pictures: Composition) -> int:
    """Steps of a training that no patience ends early, 0 for one without a loss.

    Without a number of batches in the recipe the recipe's own sampler tells the length of an epoch.

    Args:
        train: the recipe's ``train`` section.
        pictures: of the training classes.
    """
    if train["loss"] is None:
        return 0
    budget = train["budget"]
    batches = budget["batches_per_epoch"] or _pass_length(
        canonical(train["sampler"]), train["batch_size"], pictures, train["noise"]["classes"]
    )
    return int(budget["epochs"]) * batches


@cache
def _pass_length(sampler: str, batch_size: int, pictures: Composition, share: float) -> int:
    shown = pictures.first_classes(share)

    from lookalike.sampling.samplers import build_sampler  # seconds of imports
    from lookalike.training.learner import named

    name, options = named(json.loads(sampler))
    return len(build_sampler(name, options, labels=shown.labels, coarse_labels=shown.coarse, batch_size=batch_size))
