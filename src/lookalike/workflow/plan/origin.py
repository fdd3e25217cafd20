"""Origin of a number: settings, departures from the paper, and the line that makes it again.

Runs of other data or other weights beside each other are refused in a table, or marked there by choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

from lookalike.base.paths import project_root
from lookalike.base.text import in_shell
from lookalike.workflow.plan.fidelity import Departure
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import timing_files
from lookalike.workflow.plan.terms import row_terms
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.layers import Tree, canonical, settings_digest
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Recipe

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
MIXED_BY = {"data": "on another split of", "weights": "from other weights of the name"}


def departure_words(marks: str) -> str:
    """Meanings of the marks of `DEPARTURES` in a text, each once."""
    return "; ".join(f"{mark} {words}" for mark, words in DEPARTURES.items() if mark in marks)


def origin(plan: Plan, run: Mapping[str, Any], metrics: str, listed: Sequence[Departure] = ()) -> Tree:
    """Origin of a run, as the cells of a table state it.

    Args:
        plan: what the call runs.
        run: row of ``Plan.runs_of``.
        metrics: file that the run leaves its metrics in.
        listed: departures that concern the table, as `lookalike.workflow.plan.fidelity.departures` gives them.

    Returns:
        ``metrics_file``; ``settings``, the digest of all settings that decide the result; ``departs``, marks of
        `DEPARTURES` that hold for this run alone, none for a row that no paper has; ``rests_on``, the listed points
        that a comparable run rests on; ``query_in_r``, whether R counts the query; ``reads``, as
        `reads_of`; ``options`` that a rebuilding call of Snakemake needs; and ``half`` of the classes, that the run's
        seed trains on.
    """
    recipe, dataset = run["recipe"], run["dataset"]
    half = plan.half_of(dataset, run["seed"])
    settings = plan.deciding(recipe, dataset, plan.last_stage(recipe), half)
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
        "reads": reads_of(plan, recipe, dataset, run["seed"]),
        "options": rebuilding_options(plan),
        "half": half,
    }


def terms_of(plan: Plan, run: Mapping[str, Any], folder: str) -> Tree:
    """Terms of a run in a table of terms: `row_terms`, and in ``timings`` the files of its costs.

    Args:
        plan: what the call runs.
        run: row of ``Plan.runs_of``.
        folder: of the run's results.
    """
    named = run["recipe"], run["dataset"]
    files = timing_files(plan, *named, run["seed"])
    sections = plan.deciding(*named, half=plan.half_of(run["dataset"], run["seed"]))
    recipe = checked(Recipe, sections, plan.place_of(*named))
    return row_terms(recipe) | {"timings": {stage: f"{folder}/{file}" for stage, file in files.items()}}


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
    """Options by which a call of Snakemake makes results again: overlays, and the keys given beside them."""
    usual = configuration(None, [project_root() / each for each in plan.overlays])
    chosen: Tree = {"name" if plan.is_overlay else "scale": plan.scale, "suffix": plan.suffix}
    chosen |= {"selection": "held_out" if plan.holds_out else "test", "halves": plan.halves_of_call}
    given = [f"only=[{','.join(plan.only)}]"] if plan.only and plan.only != usual.get("only") else []
    given += [f"{key}={value}" for key, value in chosen.items() if value != usual.get(key)]
    files = f" --configfile {' '.join(in_shell(Path(each)) for each in plan.overlays)}" if plan.overlays else ""
    return files + (f" --config {' '.join(map(quote, given))}" if given else "")


def reads_of(plan: Plan, recipe: str, dataset: str, seed: int) -> dict[str, str]:
    """Name of the data or weights behind each digest of a record: runs with equal names must have equal digests.

    Args:
        plan: what the call runs.
        recipe: name of the run's recipe.
        dataset: data set that the run is scored on.
        seed: of the run.
    """
    trained_on = plan.training_dataset(recipe, dataset)
    strangers = plan.strangers(recipe, trained_on)
    backbone = plan.deciding(recipe, trained_on, "train")["train"]["backbone"]
    half = plan.half_of(trained_on, seed)
    data = f"the {half} half of {trained_on}" if half else trained_on
    return {
        "data": f"{data} with {strangers.name}" if strangers else data,
        "weights": str(backbone.get("weights")),
    }


def mixed_runs(runs: Sequence[Mapping[str, Any]], said: Sequence[Mapping[str, str]]) -> list[list[int]]:
    """Groups of runs that read data or weights of one name with different digests, the largest part of each first.

    Args:
        runs: rows with ``reads``, as `reads_of` gives it; others are in no group.
        said: of each run what made it, as `decided_by` gives it. One without a digest is in no group.

    Returns:
        Indices of the runs, a list for each group.
    """
    groups: dict[tuple[str, str], dict[Any, list[int]]] = {}
    for index, (run, content) in enumerate(zip(runs, said, strict=True)):
        for kind, name in run.get("reads", {}).items():
            if kind in content:
                groups.setdefault((kind, name), {}).setdefault(content[kind], []).append(index)
    parts = [sorted(group.values(), key=len, reverse=True) for group in groups.values() if len(group) > 1]
    return [[index for part in group for index in part] for group in parts]


def refuse_mixture(runs: Sequence[Mapping[str, Any]], said: Sequence[Mapping[str, str]]) -> None:
    """Refuse runs that cannot be compared, as they read other data or weights under one name.

    Args:
        runs: rows as for `mixed_runs`, with ``metrics_file`` and the ``options`` of a rebuilding call.
        said: of each run what made it.

    Raises:
        ValueError: naming two runs that differ, the line that makes the second anew, and the choice that keeps both.
    """
    for group in mixed_runs(runs, said):
        first = group[0]
        for kind, words in MIXED_BY.items():
            name, digest = runs[first]["reads"][kind], said[first].get(kind)
            others = [
                index
                for index in group
                if runs[index]["reads"][kind] == name and said[index].get(kind, digest) != digest
            ]
            if others:
                files = [runs[index]["metrics_file"] for index in others]
                raise ValueError(
                    f"{files[0]}{f' (and {len(files) - 1} more)' if files[1:] else ''} was trained {words} {name} "
                    f"({str(said[others[0]][kind])[:12]}) than {runs[first]['metrics_file']} ({str(digest)[:12]}). "
                    f"Make anew: `snakemake {' '.join(files)} --cores all{runs[first]['options']} --forcerun train`. "
                    "Show them beside each other, marked: `--config mixed=true`"
                )
