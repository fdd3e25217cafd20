"""Runs that try the options of `lookalike.plan.fidelity`, each beside its unchanged recipe."""

from __future__ import annotations

import pandas as pd

from lookalike.plan.fidelity import Trial, trials
from lookalike.plan.plan import Plan
from lookalike.plan.scales import Dataset

USUAL = "cub"  # the published data set that a choice is tried on unless it changes nothing there


def trial_runs(plan: Plan) -> pd.DataFrame:
    """One row per trial, data set and seed: ``recipe, unchanged, dataset, published, seed``.

    A trial runs on the data set that stands for `USUAL`. One that changes nothing there, or has values of its own per
    data set, runs on those whose settings it changes, at most two. Trials that the scale overrules are left out.

    Args:
        plan: what the call runs.

    Raises:
        ValueError: for a trial that cannot run on a data set.
    """
    rows = [
        {"recipe": trial.name, "unchanged": trial.recipe}
        | {"dataset": dataset.name, "published": dataset.stands_for or "", "seed": seed}
        for trial in trials()
        if not trial.is_overruled(plan.overlay)
        for dataset in _concerned(plan, trial)
        for seed in plan.several_seeds
    ]
    frame = pd.DataFrame(rows, columns=["recipe", "unchanged", "dataset", "published", "seed"])
    for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
        plan.check_run(recipe, dataset)
    return frame


def overruled_trials(plan: Plan) -> list[str]:
    """Names of the trials of which nothing is left at the scale."""
    return [trial.name for trial in trials() if trial.is_overruled(plan.overlay)]


def _concerned(plan: Plan, trial: Trial) -> list[Dataset]:
    standing = [dataset for dataset in plan.datasets.values() if dataset.stands_for] or list(plan.datasets.values())
    usual = next((dataset for dataset in standing if dataset.stands_for == USUAL), standing[0])
    changed = [
        dataset
        for dataset in standing
        if plan.deciding(trial.name, dataset.name) != plan.deciding(trial.recipe, dataset.name)
    ]
    if not changed or (usual in changed and "per_dataset" not in trial.settings):
        return [usual]
    return changed[:2]
