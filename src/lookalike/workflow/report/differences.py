"""Differences of two recipes by seed and test class, from the files of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.base.files import read_json
from lookalike.metrics.names import REPORTED
from lookalike.workflow.plan.scales import half_of_seed
from lookalike.workflow.report.by_class import class_means
from lookalike.workflow.report.statistics.crossed import Crossed

ROUNDED = 1e-5  # classes are written with six digits


def differences(changed: Sequence[str], baseline: Sequence[str], metric: str, seeds: Sequence[int]) -> Crossed:
    """Differences in percent points by seed and class; as of one class where classes are not told apart.

    Args:
        changed: files of one side, by seed.
        baseline: of the other.
        metric: what is compared.
        seeds: of the files.

    Returns:
        NaN where a seed trained on a class and was tested on the other half.

    Raises:
        ValueError: for sides or seeds of a half that were not tested on the same pictures, a file that its classes
            contradict, and seeds of which only some tell classes apart.
    """
    told = [_of_classes(*files, metric) for files in zip(changed, baseline, strict=True)]
    untold = [file for file, each in zip(changed, told, strict=True) if each is None]
    if untold and len(untold) < len(told):
        raise ValueError(
            f"{untold[0]} or what it is compared with has no numbers by class, other seeds have; remove its metrics, "
            "and the next call measures them anew"
        )
    of_classes = [each for each in told if each is not None]
    if not of_classes:
        return Crossed((values(changed, metric) - values(baseline, metric))[:, None])
    return by_class(changed, seeds, of_classes)


def by_class(files: Sequence[str], seeds: Sequence[int], told: Sequence[pd.DataFrame]) -> Crossed:
    """The same of files' ``difference`` and ``queries`` by class, which are those of its half for each seed."""
    first: dict[str, int] = {}
    for place, seed in enumerate(seeds):
        own = told[place]["queries"]
        for half, other in first.items():
            same = own.equals(told[other]["queries"])
            apart = half != half_of_seed(seed) and own.index.intersection(told[other].index).empty
            if not (same or apart):
                raise ValueError(
                    f"{files[place]} was not tested on the classes of {files[other]}; remove what is of older data"
                )
        first.setdefault(half_of_seed(seed), place)
    found = pd.concat([each["difference"] for each in told], axis="columns").sort_index()
    queries = pd.concat([told[place]["queries"] for place in first.values()], axis="columns").max(axis="columns")
    return Crossed(100 * found.to_numpy(float).T, queries.loc[found.index].to_numpy(float))


def _of_classes(changed: str, baseline: str, metric: str) -> pd.DataFrame | None:
    """By class the difference and the number of queries, ``None`` for a metric that is not told by class."""
    first, second = (class_means(path, REPORTED, metric) for path in (changed, baseline))
    if first is None or second is None:
        return None
    difference = first["value"] - second["value"]
    if difference.isna().any() or not first["queries"].equals(second["queries"]):
        raise ValueError(f"{changed} and {baseline} were not tested on the same pictures; remove what is of older data")
    for path, side in ((changed, first), (baseline, second)):
        of_all, [told] = float(np.average(side["value"], weights=side["queries"])), values([path], metric) / 100
        if abs(of_all - told) > ROUNDED:
            raise ValueError(
                f"{path} says {metric} {told:.4f}, its classes come to {of_all:.4f}; remove it and the file of the "
                "classes, and the next call measures them anew"
            )
    return pd.DataFrame({"difference": difference, "queries": first["queries"]})


def values(paths: Sequence[str], metric: str) -> NDArray[np.float64]:
    """Each file's value of a metric, in percent.

    Raises:
        ValueError: for a file without it.
    """
    found = [read_json(path)[REPORTED] for path in paths]
    for path, values in zip(paths, found, strict=True):
        if metric not in values:
            raise ValueError(f"{path} holds no {metric}; it holds {', '.join(sorted(values))}")
    return 100 * np.array([float(values[metric]) for values in found])
