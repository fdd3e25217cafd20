"""Tell MLflow which rows of a table the runs behind it fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lookalike.files import read_json
from lookalike.parameters import settings_digest
from lookalike.paths import project_root
from lookalike.plan import Plan
from lookalike.results import Stored, result_file, scoring_of, training_of
from lookalike.tracking import Uses, flat, tag_runs


def track(table: str, config: Mapping[str, Any]) -> None:
    """Tag the trainings and evaluations behind one table; nothing with tracking off.

    It comes after the table, not with the training: which tables a call asks for is no reason to train again.

    Args:
        table: its name.
        config: of the call.
    """
    plan = Plan(config)
    if plan.tracking:
        tag_runs(table, uses_of(plan, table, lambda *run: _code(plan, *run)))


def uses_of(plan: Plan, table: str, code_of: Callable[[str, str, int], str]) -> list[Uses]:
    """What a table makes of each run, of the shared trainings as of the evaluations, one entry per run.

    Args:
        plan: of the call.
        table: its name.
        code_of: digest of the code behind a recipe on a data set with a seed.
    """
    found: dict[Stored, Uses] = {}
    for run in plan.runs_of(table).to_dict("records"):
        named = (run["recipe"], run["dataset"], run["seed"])
        cell = f"{run['label']}/{run['published'] or run['dataset']}"
        for stored in dict.fromkeys((training_of(plan, *named), scoring_of(plan, *named))):
            use = found.setdefault(stored, _unused(plan, stored, code_of(*named)))
            use.cells.extend([cell] if cell not in use.cells else [])
            use.recipes.extend([run["recipe"]] if run["recipe"] not in use.recipes else [])
    return list(found.values())


def _unused(plan: Plan, stored: Stored, code: str) -> Uses:
    recipe, dataset, seed = stored
    settings = plan.settings(recipe, dataset)
    deciding = plan.settings(recipe, dataset, plan.last_stage(recipe))
    return Uses(
        identity={"scale": plan.folder, "recipe": recipe, "dataset": dataset, "seed": str(seed)},
        recipes=[],
        cells=[],
        parameters=flat({stage: values for stage, values in settings.items() if values}),
        tags={"settings": settings_digest(deciding), "code": code},
    )


def _code(plan: Plan, recipe: str, dataset: str, seed: int) -> str:
    path = project_root() / "results" / plan.folder / result_file(plan, "metrics", recipe, dataset, seed)
    return str(read_json(path).get("code", ""))
