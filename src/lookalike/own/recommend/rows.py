"""What each network and method reached on the classes that were held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.data.manifest import read_manifest
from lookalike.files import read_json
from lookalike.plan.plan import Plan
from lookalike.plan.results import result_file, timing_files
from lookalike.plan.terms import row_costs, warm_query_ms
from lookalike.reports.by_class import class_means

METRICS = ("R@1", "MAP@R")  # the first decides
CHECKPOINT = "last"  # which nothing has chosen
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One way to search.

    Attributes:
        label: such as ``ProxyAnchor`` or ``untrained``.
        start: name of the network.
        trained: whether it has learned from the classes that train.
        structural: whether structural matching (DIML) orders the first by cosine anew.
        of_classes: by metric percent ``(S, C)``, per seed and held-out class.
        queries: ``(C,)``, of each class.
        searched: pictures that a query searches, its own among them where they search each other.
        gallery: ``(C,)``, pictures of each class among which queries search; ``None`` where they search each other.
        query_ms: milliseconds per query, as measured; ``None`` where it was not.
        training_s: seconds of a training; ``None`` without one.
    """

    label: str
    start: str
    trained: bool
    structural: bool
    of_classes: Mapping[str, Values]
    queries: Values
    searched: int
    gallery: Values | None = None
    query_ms: float | None = None
    training_s: float | None = None

    @property
    def name(self) -> str:
        """Label and network, as text calls it."""
        return f"{self.label} ({self.start})"

    @property
    def seeds(self) -> int:
        """Number of trainings, 1 without one."""
        return len(self.of_classes[METRICS[0]])

    def mean(self, metric: str = METRICS[0]) -> float:
        """In percent, over all queries and seeds."""
        return float((self.of_classes[metric] @ self.queries).mean() / self.queries.sum())


@dataclass(frozen=True)
class Way:
    """A row before it is measured.

    Attributes:
        label: of the row.
        recipe: name of its recipe.
    """

    label: str
    recipe: str


# Without training: as the last map is averaged, and with structural matching of its places (a point of the sweep
# `untrained_features`).
UNTRAINED = (
    Way("untrained", "untrained"),
    Way("untrained + structural matching", "untrained_features_diml_at_g_4"),
)


@dataclass(frozen=True)
class Training:
    """What one training serves.

    Attributes:
        label: of its first row.
        ways: rows that differ in what is kept of pictures or how they are compared.
    """

    label: str
    ways: tuple[Way, ...] = field(default=())


def trainings_of(plan: Plan, dataset: str) -> list[Training]:
    """The trainings behind the rows of `comparison`, in their order; rows that share one stand together."""
    found: dict[str, Training] = {}
    for row in plan.table("comparison")["rows"]:
        if row.get("trivial"):
            continue
        shared = plan.shared("train", row["recipe"], dataset)
        before = found.get(shared, Training(row["label"]))
        found[shared] = Training(before.label, (*before.ways, Way(row["label"], row["recipe"])))
    return list(found.values())


def read_row(
    plan: Plan, results: Path, way: Way, *, start: str, dataset: str, seeds: Sequence[int], manifest: Path
) -> Row:
    """A row whose metrics are on disk.

    Args:
        plan: of the overlay.
        results: its folder ``results/<name>``.
        way: the row.
        start: name of the network.
        dataset: of the overlay.
        seeds: of its trainings.
        manifest: CSV of the split.

    Raises:
        ValueError: for metrics that are not told by class.
    """
    settings = plan.deciding(way.recipe, dataset)
    files = [results / result_file(plan, "evaluation", way.recipe, dataset, seed) for seed in seeds]
    timings = [timing_files(plan, way.recipe, dataset, seed) for seed in seeds]
    measured = [{stage: str(results / path) for stage, path in each.items()} for each in timings]
    costs = [row_costs(each, read_json(file)) for each, file in zip(measured, files, strict=True)]
    warm = [warm_query_ms(each) for each in measured]
    values: dict[str, Values] = {}
    queries, labels = np.empty(0), pd.Index([])
    for metric in METRICS:
        found = [class_means(str(file), CHECKPOINT, metric) for file in files]
        if any(each is None for each in found):
            raise ValueError(f"{files[0]}: {metric} is not told by class")
        means = [each for each in found if each is not None]
        values[metric] = np.stack([100 * each["value"].to_numpy(np.float64) for each in means])
        queries, labels = means[0]["queries"].to_numpy(np.float64), means[0].index
    rows = read_manifest(manifest)
    gallery = rows.loc[rows["role"] == "gallery", "label"].value_counts()
    return Row(
        way.label,
        start,
        trained=settings["train"]["loss"] is not None,
        structural=settings["evaluate"]["scoring"]["name"] == "structural_matching",
        of_classes=values,
        queries=queries,
        gallery=np.asarray(gallery.reindex(labels, fill_value=0), dtype=np.float64) if len(gallery) else None,
        searched=int(gallery.sum() if len(gallery) else queries.sum()),
        query_ms=_mean([each["query_ms"] for each in costs] if None in warm else warm),
        training_s=_mean([each["training_s"] for each in costs]) if settings["train"]["loss"] else None,
    )


def chance(row: Row) -> float:
    """R@1 in percent of a search that knows nothing, among the pictures that a row has searched."""
    total = float(row.queries.sum())
    if row.gallery is not None:
        return 100 * float(row.queries @ row.gallery) / (total * row.searched)
    return 100 * float((row.queries * (row.queries - 1)).sum()) / (total * (total - 1))


def as_data(row: Row) -> dict[str, Any]:
    """As JSON takes it."""
    return {
        "label": row.label,
        "network": row.start,
        "trained": row.trained,
        "structural_matching": row.structural,
        "seeds": row.seeds,
        "query_ms": row.query_ms,
        "training_s": row.training_s,
    } | {metric: row.mean(metric) for metric in METRICS}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None
