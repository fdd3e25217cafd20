"""The command ``lookalike show``: a recipe as it applies to a data set, and where each of its values stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lookalike.base.checks import require_known
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.recipes import STAGES
from lookalike.workflow.settings.files import yaml_value
from lookalike.workflow.settings.layers import Stated, flat, stated


def print_recipe(plan: Plan, run: str, against: str | None = None) -> int:
    """Print the recipe of a run as YAML, each value with file and key that state it; or its differences from another.

    Args:
        plan: of the scale or the overlays.
        run: ``RECIPE@DATASET``.
        against: another one; its data set is that of ``run`` if it names none.

    Raises:
        ValueError: for a recipe or a data set that there is not, or a recipe that cannot run.
    """
    recipe, dataset = _named(run, plan, "")
    shown = _stated_sections(plan, recipe, dataset)
    lines = list(_yaml(shown))
    if against is not None:
        other = _stated_sections(plan, *_named(against, plan, dataset))
        lines = list(_differences(dict(flat(shown)), dict(flat(other))))
    for line in lines:
        print(line)
    return 0


def _named(run: str, plan: Plan, dataset: str) -> tuple[str, str]:
    recipe, _, named = run.partition("@")
    if not (dataset := named or dataset):
        raise ValueError(f"{run!r}: a recipe is shown on a data set, as {recipe}@{next(iter(plan.datasets))}")
    if not recipe:
        raise ValueError(f"{run!r}: names no recipe; RECIPE@{dataset} does")
    require_known(f"data set of scale {plan.scale}", dataset, plan.datasets)
    plan.check_run(recipe, dataset)
    return recipe, dataset


def _stated_sections(plan: Plan, recipe: str, dataset: str) -> dict[str, Any]:
    found = stated(plan.layers(recipe, dataset))
    return {stage: found[stage] for stage in STAGES if stage in found}


def _yaml(tree: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield f"{indent}{yaml_value(key)}:"
            yield from _yaml(value, f"{indent}  ")
        else:
            yield f"{indent}{yaml_value(key)}: {yaml_value(value.value)}  # {_origin(value)}"


def _differences(ours: Mapping[str, Stated], theirs: Mapping[str, Stated]) -> Iterator[str]:
    for key in dict.fromkeys([*ours, *theirs]):
        if ours.get(key) != theirs.get(key):
            origins = [_origin(each) if each else "not stated" for each in (ours.get(key), theirs.get(key))]
            values = [yaml_value(each.value) if each else "nothing" for each in (ours.get(key), theirs.get(key))]
            yield f"{key}: {values[0]} instead of {values[1]}  # {origins[0]}; {origins[1]}"


def _origin(value: Stated) -> str:
    """File and key, in a comment of one line."""
    return value.origin if value.origin.isprintable() else ascii(value.origin)
