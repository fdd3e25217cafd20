"""How many optimisation steps a training takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.data import read_manifest
from lookalike.parameters import canonical
from lookalike.paths import project_root
from lookalike.samplers import build_sampler
from lookalike.scales import Dataset
from lookalike.training.learner import named

COARSE = 12  # coarse classes that a hierarchical sampler is shown, as many as Stanford Online Products has


def role_sizes(dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Pictures and classes of each role: as published, or as the data set's manifest lists them once there is one.

    Returns:
        By role; without an entry for a role of which nothing is known yet.
    """
    manifest = project_root() / dataset.folder / "splits" / f"{dataset.name}.csv"
    if manifest.is_file():
        return _listed(manifest)
    counts = dataset.specification.get("counts", {})
    return {
        role: (each["images"], each["classes"]) for role, each in counts.items() if {"images", "classes"} <= {*each}
    }


def training_steps(train: Mapping[str, Any], pictures: int, classes: int) -> int:
    """Steps of a training that no patience ends early, 0 for one without a loss.

    Without a number of batches in the recipe the recipe's own sampler tells the length of an epoch, as if all classes
    were of the same size.

    Args:
        train: the recipe's ``train`` section.
        pictures: of the training classes.
        classes: among them.
    """
    if train["loss"] is None:
        return 0
    share, budget = train["noise"]["classes"], train["budget"]
    batches = budget["batches_per_epoch"] or _pass_length(
        canonical(train["sampler"]), train["batch_size"], round(share * pictures), round(share * classes)
    )
    return int(budget["epochs"]) * batches


@cache
def _pass_length(sampler: str, batch_size: int, pictures: int, classes: int) -> int:
    name, options = named(json.loads(sampler))
    labels = np.arange(pictures) % classes
    return len(build_sampler(name, options, labels=labels, coarse_labels=labels % COARSE, batch_size=batch_size))


@cache
def _listed(manifest: Path) -> dict[str, tuple[int, int]]:
    roles = read_manifest(manifest).groupby("role")
    return {str(role): (len(rows), rows["label"].nunique()) for role, rows in roles}
