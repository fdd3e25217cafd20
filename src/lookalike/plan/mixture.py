"""Runs of other data or other weights beside each other: refused in a table, or marked there by choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.plan.plan import Plan

MIXED_BY = {"data": "on another split of", "weights": "from other weights of the name"}


def reads_of(plan: Plan, recipe: str, dataset: str) -> dict[str, str]:
    """By digest of the metrics the name of what it is of: runs with equal names must have equal digests.

    Args:
        plan: what the call runs.
        recipe: name of the run's recipe.
        dataset: data set that the run is scored on.
    """
    trained_on = plan.training_dataset(recipe, dataset)
    strangers = plan.strangers(recipe, trained_on)
    backbone = plan.deciding(recipe, trained_on, "train")["train"]["backbone"]
    return {
        "data": f"{trained_on} with {strangers.name}" if strangers else trained_on,
        "weights": str(backbone.get("weights")),
    }


def mixed_runs(runs: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Groups of runs that read data or weights of one name with different digests, the largest part of each first.

    Args:
        runs: rows with ``reads``, as `reads_of` gives it; others are in no group.
        metrics: what the metrics file of each run holds. One without a digest, of older code, is in no group.

    Returns:
        Indices of the runs, a list for each group.
    """
    groups: dict[tuple[str, str], dict[Any, list[int]]] = {}
    for index, (run, content) in enumerate(zip(runs, metrics, strict=True)):
        for kind, name in run.get("reads", {}).items():
            if kind in content:
                groups.setdefault((kind, name), {}).setdefault(content[kind], []).append(index)
    parts = [sorted(group.values(), key=len, reverse=True) for group in groups.values() if len(group) > 1]
    return [[index for part in group for index in part] for group in parts]


def refuse_mixture(runs: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs that cannot be compared, as they read other data or weights under one name.

    Args:
        runs: rows as for `mixed_runs`, with ``metrics_file`` and the ``options`` of a rebuilding call.
        metrics: what these files hold.

    Raises:
        ValueError: naming two runs that differ, the line that makes the second anew, and the choice that keeps both.
    """
    for group in mixed_runs(runs, metrics):
        first = group[0]
        for kind, words in MIXED_BY.items():
            name, digest = runs[first]["reads"][kind], metrics[first].get(kind)
            others = [
                index
                for index in group
                if runs[index]["reads"][kind] == name and metrics[index].get(kind, digest) != digest
            ]
            if others:
                files = [runs[index]["metrics_file"] for index in others]
                raise ValueError(
                    f"{files[0]}{f' (and {len(files) - 1} more)' if files[1:] else ''} was trained {words} {name} "
                    f"({str(metrics[others[0]][kind])[:12]}) than {runs[first]['metrics_file']} ({str(digest)[:12]}). "
                    f"Make anew: `snakemake {' '.join(files)} --cores all{runs[first]['options']} --forcerun train`. "
                    "Show them beside each other, marked: `--config mixed=true`"
                )
