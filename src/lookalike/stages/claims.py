"""Hold what the papers claim in words against the measured runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lookalike.files import read_json, replacing, write_text
from lookalike.metrics.names import ON_OBJECT
from lookalike.reports.by_class import class_means
from lookalike.reports.claims import claim_cells, markdown

DECIDED, BESIDE = "last", "best"
ROUNDED = 1e-5  # classes are written with six digits


def claims(
    claims: Mapping[str, Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    chosen_on: str,
    changed: Sequence[str],
    baseline: Sequence[str],
    output: str,
) -> None:
    """Write the verdict on every claim as CSV and Markdown.

    Args:
        claims: entries of ``params/claims.yaml`` by name.
        runs: rows of runs, from ``lookalike.plan.claims.claim_runs``.
        scale: what the scale calls itself.
        chosen_on: what the best epoch of a training is best on.
        changed: JSON files with what the changed recipes reached, in the order of the runs; beside those of retrieval
            lies what their classes reached. Where the pictures have no masks they do not tell what lies on the object,
            and what is claimed of it is not tested.
        baseline: JSON files of the baselines' metrics, in the same order.
        output: path without extension; ``.csv`` holds every comparison, ``.md`` is for readers.

    Raises:
        ValueError: for a file without the metric that is claimed about, sides that were not tested on the same
            pictures, and a file that its classes contradict.
    """
    sides = [side for side in zip(runs, changed, baseline, strict=True) if _is_told(*side)]
    cells = claim_cells(claims, *(_measured(sides, checkpoint) for checkpoint in (DECIDED, BESIDE)))
    with replacing(f"{output}.csv") as path:
        cells.to_csv(path, index=False, float_format="%.4f")
    shown = pd.read_csv(f"{output}.csv")  # rounded as there, so that the two say the same
    seeds = sorted({run["seed"] for run in runs})
    write_text(f"{output}.md", markdown(claims, shown, seeds=seeds, chosen_on=chosen_on, scale=scale))


def _measured(sides: Sequence[tuple[Mapping[str, Any], str, str]], checkpoint: str) -> pd.DataFrame:
    """What both sides of each run reached, as `claim_cells` takes it."""
    keys = ["claim", "metric", "published", "dataset", "changed", "baseline", "seed"]
    rows = [
        {
            **run,
            "changed_value": _value(first, checkpoint, run["metric"]),
            "baseline_value": _value(second, checkpoint, run["metric"]),
            "classes": _of_classes(first, second, checkpoint, run["metric"]),
        }
        for run, first, second in sides
    ]
    return pd.DataFrame(rows, columns=[*keys, "changed_value", "baseline_value", "classes"])


def _of_classes(changed: str, baseline: str, checkpoint: str, metric: str) -> pd.DataFrame | None:
    """By class the difference and the number of queries, ``None`` for a metric that is not told by class."""
    first, second = (class_means(path, checkpoint, metric) for path in (changed, baseline))
    if first is None or second is None:
        return None
    difference = first["value"] - second["value"]
    if difference.isna().any() or not first["queries"].equals(second["queries"]):
        raise ValueError(f"{changed} and {baseline} were not tested on the same pictures; remove what is of older data")
    for path, side in ((changed, first), (baseline, second)):
        of_all, told = float(np.average(side["value"], weights=side["queries"])), _value(path, checkpoint, metric)
        if abs(of_all - told) > ROUNDED:
            raise ValueError(
                f"{path} says {metric} {told:.4f}, its classes come to {of_all:.4f}; remove it and the file of the "
                "classes, and the next call measures them anew"
            )
    return pd.DataFrame({"difference": difference, "queries": first["queries"]})


def _is_told(run: Mapping[str, Any], *files: str) -> bool:
    return run["metric"] != ON_OBJECT or all(ON_OBJECT in read_json(file)[DECIDED] for file in files)


def _value(path: str, checkpoint: str, metric: str) -> float:
    values = read_json(path)[checkpoint]
    if metric not in values:
        raise ValueError(f"{path} holds no {metric}; it holds {', '.join(sorted(values))}")
    return float(values[metric])
