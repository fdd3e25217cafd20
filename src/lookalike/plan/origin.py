"""Where a number comes from: settings, departures from the paper, and the line that makes it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lookalike.paths import project_root
from lookalike.plan.fidelity import Departure
from lookalike.plan.mixture import reads_of
from lookalike.plan.plan import Plan
from lookalike.plan.results import timing_files
from lookalike.plan.terms import row_terms
from lookalike.settings.call import configuration
from lookalike.settings.layers import Tree, canonical, settings_digest

# Told by the metrics: which lists a data set was split by is known once it is read, what trained it, from what, once it
# is trained.
OWN_SPLIT, OLDER, MIXED = "O", "C", "M"
OUR_CHOICE = "F"
# What can differ from the paper, in the order in which marks stand.
DEPARTURES = {
    "D": "other data that stand in",
    OWN_SPLIT: "own split of the classes, the authors' lists not being there",
    "B": "other backbone or other initial weights",
    "S": "other settings (pictures, batch, rates, budget, sizes)",
    OUR_CHOICE: "rests on a choice of ours that docs/fidelity.md lists",
    OLDER: "trained by other code than today's",
    MIXED: "beside runs of another split or other weights of the same name",
    "1": "one seed",
}


def origin(plan: Plan, run: Mapping[str, Any], metrics: str, listed: Sequence[Departure] = ()) -> Tree:
    """What the cells of a table say about one of their runs.

    Args:
        plan: what the call runs.
        run: row of ``Plan.runs_of``.
        metrics: file with the run's metrics.
        listed: departures that concern the table, as `lookalike.plan.fidelity.departures` gives them.

    Returns:
        ``metrics_file``; ``settings``, the digest of all settings that decide the result; ``departs``, marks of
        `DEPARTURES` that hold for this run alone, none for a row that no paper has; ``rests_on``, the listed points
        that a comparable run rests on; ``query_in_r``, whether R counts the query; ``reads``, as
        `lookalike.plan.mixture.reads_of`; and ``options`` that a rebuilding call of Snakemake needs.
    """
    recipe, dataset = run["recipe"], run["dataset"]
    settings = plan.deciding(recipe, dataset, plan.last_stage(recipe))
    everything = plan.deciding(recipe, dataset)
    comparable = run["comparable"] and not run["trivial"]
    points = [
        departure.point for departure in listed if comparable and departure.concerns(everything, run["published"])
    ]
    departs = _departures(plan, recipe, dataset) + (OUR_CHOICE if points else "")
    return {
        "metrics_file": metrics,
        "settings": settings_digest(settings),
        "departs": "" if run["trivial"] else departs,
        "rests_on": "; ".join(points),
        "query_in_r": everything["evaluate"]["count_query_in_r"],
        "reads": reads_of(plan, recipe, dataset),
        "options": rebuilding_options(plan),
    }


def terms_of(plan: Plan, run: Mapping[str, Any]) -> Tree:
    """What a table of terms says about one of its runs: `row_terms`, and in ``timings`` the files of what it cost."""
    named = run["recipe"], run["dataset"]
    files = timing_files(plan, *named, run["seed"])
    return row_terms(plan.settings(*named)) | {
        "timings": {stage: f"results/{plan.folder}/{file}" for stage, file in files.items()}
    }


@cache
def _departures(plan: Plan, recipe: str, dataset: str) -> str:
    settings = plan.deciding(recipe, dataset, plan.last_stage(recipe))
    stands_for, marks = plan.datasets[dataset].stands_for, ""
    if stands_for is not None and not plan.datasets[dataset].is_published:
        marks += "D"
    stated = plan.stated(recipe, dataset)
    if stated["train"]["backbone"] != settings["train"]["backbone"]:
        marks += "B"
    changed = (_without_backbone(stated[section]) != _without_backbone(values) for section, values in settings.items())
    if plan.picture_cache or any(changed):
        marks += "S"
    return marks


def _without_backbone(section: Tree) -> str:
    return canonical({key: value for key, value in section.items() if key != "backbone"} if section else section)


@cache
def rebuilding_options(plan: Plan) -> str:
    """What a call of Snakemake is to be given to make results again: overlays, and what was said beside them."""
    usual = configuration(None, [project_root() / each for each in plan.overlays])
    chosen = {"name" if plan.is_overlay else "scale": plan.scale, "suffix": plan.suffix}
    chosen["selection"] = "held_out" if plan.holds_out else "test"
    given = [f"{key}={value}" for key, value in chosen.items() if value != usual.get(key)]
    files = f" --configfile {shlex.join(plan.overlays)}" if plan.overlays else ""
    return files + (f" --config {' '.join(given)}" if given else "")
