"""What the papers claim in words: read from ``params/claims.yaml``, checked, and laid out as runs to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.checks import require_known
from lookalike.methods import METHODS
from lookalike.metrics.names import OF_ATTENTION, ON_TRAINING, of_data_sets
from lookalike.plan.plan import Plan
from lookalike.settings.datasets import Dataset
from lookalike.settings.files import dataset_names, read, read_entries
from lookalike.settings.layers import Tree
from lookalike.settings.pages import Claim
from lookalike.settings.recipes import Recipe

FILE = "params/claims.yaml"
SIDES = ("changed", "baseline")


def read_claims(plan: Plan) -> dict[str, Tree]:
    """All claims by name, those without data at this scale too.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown recipe or published data set.
    """
    claims = {name: claim.dump() for name, claim in read_entries(FILE, Claim).items()}
    datasets = dataset_names()
    of_retrieval = of_data_sets(read(f"params/datasets/{dataset}.yaml", Dataset).dump() for dataset in datasets)
    for name, claim in claims.items():
        require_known(f"{FILE}, {name}.metric", claim["metric"], {*of_retrieval, *OF_ATTENTION})
        for dataset in claim["datasets"]:
            require_known(f"{FILE}, {name}.datasets", dataset, datasets)
        for place, pair in enumerate(claim["pairs"]):
            for side in SIDES:
                require_known(f"{FILE}, {name}.pairs.{place}.{side}", pair[side], plan.recipe_names)
    return claims


def claim_runs(plan: Plan, claims: Mapping[str, Tree]) -> list[dict[str, Any]]:
    """One entry per claim, data set of this scale, pair and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two.
        claims: as `read_claims` gives them.

    Returns:
        Entries with ``claim, metric, published, dataset, changed, baseline, seed``.

    Raises:
        ValueError: for a pair that cannot run at this scale, or a metric that one of its recipes does not measure.
    """
    comparisons = [
        {"claim": name, "metric": claim["metric"], "published": published, "dataset": dataset.name, **pair}
        for name, claim in claims.items()
        for published in claim["datasets"]
        for dataset in plan.datasets.values()
        if dataset.stands_for == published
        for pair in claim["pairs"]
    ]
    for comparison in comparisons:
        for side in SIDES:
            recipe, dataset = comparison[side], comparison["dataset"]
            plan.check_run(recipe, dataset)
            _check_measured(plan.settings(recipe, dataset), comparison, recipe)
    return [{**comparison, "seed": seed} for comparison in comparisons for seed in plan.several_seeds]


def _check_measured(settings: Recipe, comparison: Mapping[str, Any], recipe: str) -> None:
    metric, method = comparison["metric"], settings.train.method.name
    place = f"{FILE}, {comparison['claim']}.metric"
    if metric in OF_ATTENTION and not METHODS[method].has_attention:
        allowed = " or ".join(name for name, each in METHODS.items() if each.has_attention)
        raise ValueError(f"{place}: {metric} needs train.method {allowed}; recipe {recipe} trains {method}")
    if metric.startswith(ON_TRAINING) and not settings.embed.training_pictures:
        raise ValueError(f"{place}: {metric} needs embed.training_pictures, which recipe {recipe} does not set")
