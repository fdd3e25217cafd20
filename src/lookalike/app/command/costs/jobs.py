"""The jobs of a call: each training and evaluation once, however many runs share it; and their steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import scoring_of, training_of
from lookalike.workflow.plan.sizes import Composition
from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.model import Part
from lookalike.workflow.settings.recipes import Train

STAGES = ("train", "evaluate", "segment")  # of the jobs that work with a model
READING = ("train", "evaluate")  # that read copies of pictures, where there are such


class Run(NamedTuple):
    """One of the runs whose mean is a table's cell."""

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
    """Number of jobs by rule of ``snakemake tables`` where no result exists yet, the target itself included."""
    jobs = distinct_jobs(plan)
    others = strangers_of(plan, jobs)
    copied = {*others, *(job.dataset for job in jobs if job.stage in READING)}
    datasets = others | {job.dataset for job in jobs}
    counts = {"download": sum(plan.datasets[name].is_downloaded for name in datasets), "split": len(datasets)}
    counts["second_half"] = len(_second_halves(plan, jobs))
    counts["pictures"] = sum(plan.picture_cache_of(dataset) is not None for dataset in copied)
    counts |= {stage: sum(job.stage == stage for job in jobs) for stage in STAGES}
    for rule, ways in (("episodes", 1), ("two_way_episodes", 2)):
        counts[rule] = len({job.dataset for job in jobs if job.stage == "segment" and _ways(plan, job) == ways})
    return counts | {"table": len(plan.table_names), "tables_page": 1, "tables": 1}


def strangers_of(plan: Plan, jobs: list[Job]) -> set[str]:
    """Data sets whose pictures replace others in some of these trainings."""
    filling = (plan.strangers(job.recipe, job.dataset) for job in jobs if job.stage == "train")
    return {each.name for each in filling if each is not None}


def _second_halves(plan: Plan, jobs: list[Job]) -> set[str]:
    """Data sets of which some of these jobs read the list with training and test classes in each other's place."""
    reading = [(job.dataset, job.seed) for job in jobs if job.stage in READING]
    filling = [(name, job.seed) for job in jobs for name in strangers_of(plan, [job])]
    return {name for name, seed in (*reading, *filling) if plan.half_of(name, seed)}


def _ways(plan: Plan, job: Job) -> int:
    return plan.ways_of(job.recipe, job.dataset)


def _behind(plan: Plan, run: Run) -> Iterator[Job]:
    yield Job("train", *training_of(plan, *run))
    yield Job(plan.last_stage(run.recipe), *scoring_of(plan, *run))


def training_steps(train: Train, pictures: Composition) -> int:
    """Steps of a training that no patience ends early, 0 for one without a loss.

    Without a number of batches in the recipe the recipe's own sampler tells the length of an epoch.

    Args:
        train: the recipe's ``train`` section.
        pictures: of the training classes.
    """
    if train.loss is None:
        return 0
    batches = train.budget.batches_per_epoch or _pass_length(
        canonical(train.sampler.dump()), train.batch_size, pictures, train.noise.classes
    )
    return train.budget.epochs * batches


@cache
def _pass_length(sampler: str, batch_size: int, pictures: Composition, share: float) -> int:
    shown = pictures.first_classes(share)

    from lookalike.sampling.samplers import build_sampler  # seconds of imports

    chosen = Part(**json.loads(sampler))
    built = build_sampler(
        chosen.name, chosen.options, labels=shown.labels, coarse_labels=shown.coarse, batch_size=batch_size
    )
    return len(built)
