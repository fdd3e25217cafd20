"""What is traced: the recipes of a scale's tables, and those that a mutation must show in."""

from __future__ import annotations

from typing import Any

from lookalike.checks import require_known
from lookalike.paths import project_root
from lookalike.plan.plan import Plan
from lookalike.settings.files import read_yaml
from lookalike.settings.layers import Tree

FILE = "params/mutations.yaml"


def traced(plan: Plan) -> list[tuple[str, str]]:
    """Recipe and data set of each trace: one for all seeds."""
    runs = plan.runs[["recipe", "dataset"]].drop_duplicates()
    return [(str(recipe), str(dataset)) for recipe, dataset in runs.itertuples(index=False)]


def trace_name(recipe: str, dataset: str) -> str:
    """By what the committed traces are found."""
    return f"{recipe}@{dataset}"


def read_mutations() -> dict[str, Tree]:
    """Entries of ``params/mutations.yaml`` by name.

    Raises:
        ValueError: naming file, key and what would be right.
    """
    return read_yaml(project_root() / FILE)


def mutation_requests(plan: Plan, name: str) -> dict[str, dict[str, Any]]:
    """By name of the trace, the arguments of the stage ``trace`` for the recipes that a mutation must show in.

    Raises:
        ValueError: for an unknown mutation, or a recipe that the tables of the scale do not hold.
    """
    entries = read_mutations()
    require_known(FILE, name, entries)
    there = {trace_name(*run): run for run in traced(plan)}
    for trace in entries[name]["recipes"]:
        require_known(f"{FILE}, {name}.recipes", trace, there)
    return {trace: _request(plan, *there[trace]) for trace in entries[name]["recipes"]}


def _request(plan: Plan, recipe: str, dataset: str) -> dict[str, Any]:
    return {"settings": plan.deciding(recipe, dataset), "specification": plan.datasets[dataset].specification}
