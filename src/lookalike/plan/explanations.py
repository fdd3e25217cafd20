"""Which explanations are measured and how: read from ``params/explanations.yaml``, checked, and laid out as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.checks import require_known, require_own_labels
from lookalike.plan.plan import Plan
from lookalike.plan.scales import Dataset
from lookalike.settings.files import read
from lookalike.settings.layers import Tree, merge
from lookalike.settings.model import checked
from lookalike.settings.pages import Explanations
from lookalike.sources.code import keys_of

FILE = "params/explanations.yaml"
PROTOCOL = ("seed", "grid", "steps", "substitutes")  # what a measurement depends on, beside model and triplets
CONTROLS = ("random", "centre", "edges")  # that know neither model nor pair, as `lookalike.explanations` has them
CHOICE = "lookalike.explanations.choice"


def read_explanations(plan: Plan) -> Tree:
    """What ``params/explanations.yaml`` says, with what the scale lays over it.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown recipe, explainer or substitute.
    """
    settings = merge(read(FILE, Explanations).dump(), plan.explanations)
    place = f"{plan.scale_file}, explanations" if plan.explanations else FILE
    checked(Explanations, settings, place)
    require_known(f"{place}, neutral.recipe", settings["neutral"]["recipe"], plan.recipe_names)
    known = keys_of("lookalike.explanations.quality.deletion", "SUBSTITUTES")
    for substitute in settings["substitutes"]:
        require_known(f"{place}, substitutes", substitute, known)
    if settings["steps"] > settings["grid"] ** 2:
        raise ValueError(
            f"{place}, steps: {settings['steps']} is more than the {settings['grid'] ** 2} cells of the grid"
        )
    for number, block in enumerate(settings["blocks"]):
        for row in block["rows"]:
            where = f"{place}, blocks.{number}, row {row['label']!r}"
            require_known(f"{where}, recipe", row["recipe"], plan.recipe_names)
            require_known(f"{where}, explainer", row["explainer"], explainers())
        labels = (f"{row['label']!r} by {row['explainer']}" for row in block["rows"])
        require_own_labels(f"{place}, blocks.{number}", labels)
    return settings


def explainers() -> tuple[str, ...]:
    """All methods of explanation, the controls last."""
    return (*keys_of(CHOICE, "OF_EMBEDDERS"), *keys_of(CHOICE, "OF_GRAPHS"), *CONTROLS)


def check_explainer(plan: Plan, recipe: str, dataset: str, explainer: str, where: str = FILE) -> None:
    """Refuse a method that cannot explain what a recipe trains.

    Raises:
        ValueError: naming the recipe and the methods that can.
    """
    method = plan.settings(recipe, dataset).train.method.name
    able = keys_of(CHOICE, "OF_GRAPHS" if method == "avsl" else "OF_EMBEDDERS")
    if explainer not in (*able, *CONTROLS):
        raise ValueError(
            f"{where}: explainer {explainer!r} does not explain recipe {recipe}, which trains {method}; "
            f"these do: {', '.join((*able, *CONTROLS))}"
        )


def explained_datasets(plan: Plan, settings: Mapping[str, Any]) -> list[Dataset]:
    """Data sets of this scale that are named, or that stand for those that are.

    Raises:
        ValueError: for none, or one whose test pictures do not search each other.
    """
    wanted = settings["datasets"]
    found = [each for each in plan.datasets.values() if each.name in wanted or each.stands_for in wanted]
    if not found:
        raise ValueError(
            f"{FILE}, datasets: no data set of scale {plan.scale} is or stands for {' or '.join(map(repr, wanted))}; "
            f"it has {', '.join(plan.datasets)}"
        )
    for each in found:
        if not each.specification.get("self_match", True):
            raise ValueError(f"{FILE}, datasets: {each.name} has queries and a gallery; triplets are drawn of one set")
    return found


def explanation_rows(plan: Plan, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per block, data set, row and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two, unless a row has its own.
        settings: as `read_explanations` gives them.

    Returns:
        Entries with ``block, label, recipe, explainer, dataset, seed``.

    Raises:
        ValueError: for a recipe that cannot run at this scale or that the explainer does not explain.
    """
    rows = [
        {"block": block["title"], "dataset": dataset.name}
        | {key: row[key] for key in ("label", "recipe", "explainer")}
        | {"seed": seed}
        for block in settings["blocks"]
        for dataset in explained_datasets(plan, settings)
        for row in block["rows"]
        for seed in row.get("seeds", plan.several_seeds)
    ]
    for row in rows:
        plan.check_run(row["recipe"], row["dataset"])
        check_explainer(plan, row["recipe"], row["dataset"], row["explainer"], f"{FILE}, row {row['label']!r}")
    return rows
