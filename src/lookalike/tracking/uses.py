"""What a table makes of the runs whose metrics it shows, as MLflow is told it."""

from __future__ import annotations

from pathlib import Path

from lookalike.paths import project_root
from lookalike.plan.origin import rebuilding_options
from lookalike.plan.plan import Plan
from lookalike.plan.results import Stored, result_file, scoring_of
from lookalike.settings.layers import settings_digest
from lookalike.tracking.client import flat
from lookalike.tracking.rows import Uses, View


def view_of(plan: Plan, table: str) -> View:
    """A table as MLflow lists its runs: with the metrics that the table shows, in its order."""
    entry = plan.table(table)
    return View(table, entry["metrics"], "last" if entry.get("checkpoint") == "last" else "best")


def uses_of(plan: Plan, table: str) -> list[Uses]:
    """What a table makes of each run whose metrics it shows, one entry per run.

    A run that was not finished is left out.
    """
    uses: dict[Stored, Uses] = {}
    for run in plan.runs_of(table).to_dict("records"):
        named = (run["recipe"], run["dataset"], run["seed"])
        path = project_root() / "results" / plan.folder / result_file(plan, "metrics", *named)
        if path.is_file():
            stored = scoring_of(plan, *named)
            use = uses.setdefault(stored, _unused(plan, stored, path))
            use.rows.extend([run["label"]] if run["label"] not in use.rows else [])
    return list(uses.values())


def _unused(plan: Plan, stored: Stored, metrics: Path) -> Uses:
    recipe, dataset, seed = stored
    settings = plan.deciding(recipe, dataset)
    deciding = plan.deciding(recipe, dataset, plan.last_stage(recipe))
    stands_for = plan.datasets[dataset].stands_for
    tags = {"settings": settings_digest(deciding), "paper": plan.paper_of(recipe)}
    return Uses(
        identity={"scale": plan.folder, "recipe": recipe, "dataset": dataset, "seed": str(seed)},
        rows=[],
        parameters=flat({stage: values for stage, values in settings.items() if values}),
        tags=tags | ({"stands_for": stands_for} if stands_for else {}),
        rebuild=f"snakemake --cores all {metrics.relative_to(project_root())}{rebuilding_options(plan)}",
    )
