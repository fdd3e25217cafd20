"""How many bytes pictures take that are kept in another form: smaller copies of them, and decoded ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lookalike.command.costs.hours import crop_size
from lookalike.command.costs.jobs import Job, strangers_of
from lookalike.data import read_manifest
from lookalike.data.decoded import GB, fixed_keys, sampled
from lookalike.data.roles import EMBEDDED, SEARCHED
from lookalike.paths import project_root
from lookalike.plan.plan import Plan
from lookalike.plan.scales import Dataset
from lookalike.plan.sizes import role_sizes
from lookalike.settings.layers import canonical

PROPORTION = 4 / 3  # of a photograph's sides, where no picture is at hand
# Bytes a pixel of 543 photographs of birds, 500 px wide, resized to a shorter side of 288.
BYTES_A_PIXEL = {"jpeg": 0.15, "png": 1.55}

Form = tuple[str, str, str]  # data set, role and the fixed part of a view


@dataclass(frozen=True)
class Decoded:
    """What decoded pictures take.

    Attributes:
        test_bytes: of pictures that are searched, or represented.
        training_bytes: of those that are learned from, as their random crop finds them; the limit where it is unknown.
        beyond: how many splits and views are over the limit, and are decoded whenever they are read.
        unknown: how many are counted as the limit.
    """

    test_bytes: int
    training_bytes: int
    beyond: int
    unknown: int


def copies_bytes(plan: Plan, names: Iterable[str]) -> dict[str, int | None]:
    """What smaller copies take, by data set; ``None`` where the pictures have not been counted.

    Args:
        plan: of the call.
        names: data sets that are read.
    """
    sizes: dict[str, int | None] = {}
    for name in names:
        if cache_of := plan.picture_cache_of(name):
            dataset = plan.datasets[name]
            count = sum(images for images, _ in role_sizes(dataset).values())
            pixels = _pixels(dataset, None, {"resize_px": cache_of["shorter_side_px"]})
            each = None if pixels is None else pixels * BYTES_A_PIXEL[cache_of["encoding"]]
            sizes[name] = round(count * each) if count and each else None
    return sizes


def decoded_bytes(plan: Plan, jobs: list[Job]) -> Decoded:
    """What pictures take that are decoded once for all runs.

    Args:
        plan: of the call.
        jobs: of the call.
    """
    limit = round(plan.decoded_gb * GB)
    sizes = {"train": 0, "test": 0}
    beyond = unknown = 0
    for dataset, role, view in _forms(plan, jobs):
        count = role_sizes(plan.datasets[dataset]).get(role, (0, 0))[0]
        pixels = _pixels(plan.datasets[dataset], plan.picture_cache_of(dataset), json.loads(view))
        size = round(3 * pixels * count) if pixels and count else None
        if size is not None and size > limit:
            beyond += 1
        else:
            unknown += size is None
            sizes["train" if role == "train" else "test"] += limit if size is None else size
    return Decoded(sizes["test"], sizes["train"], beyond, unknown)


def _forms(plan: Plan, jobs: list[Job]) -> set[Form]:
    """Each split and view that is decoded once, however many runs read it."""
    forms: set[Form] = set()
    for job in jobs:
        if job.stage not in ("train", "embed"):
            continue
        sections = plan.deciding(job.recipe, job.dataset, "embed")
        train = sections["train"]
        known = set(EMBEDDED) & role_sizes(plan.datasets[job.dataset]).keys() or {"test"}
        searched = canonical(fixed_keys(train["test_image"]))
        if job.stage == "embed":
            forms |= {(job.dataset, role, searched) for role in known}
            if sections["embed"]["training_pictures"]:
                forms.add((job.dataset, "train", searched))
        elif train["loss"] is not None:
            forms |= {(job.dataset, role, searched) for role in known.intersection(SEARCHED)}
            read = {job.dataset, *strangers_of(plan, [job])}
            forms |= {(name, "train", canonical(fixed_keys(train["image"]))) for name in read}
    return forms


def _pixels(dataset: Dataset, copied: Mapping[str, Any] | None, view: Mapping[str, Any]) -> float | None:
    """Pixels of a picture as the fixed part of a view leaves it, on average; ``None`` where nothing tells."""
    if "crop_px" in view:
        return float(prod(crop_size(view)))
    if isinstance(view["resize_px"], list):
        return float(prod(view["resize_px"]))
    side = view["resize_px"] or (copied["shorter_side_px"] if copied else None)
    sizes = _sampled(project_root() / dataset.manifest, project_root() / dataset.root)
    if sizes is None:
        return side and PROPORTION * side**2
    if side:
        sizes = sizes * (side / sizes.min(axis=1, keepdims=True))
    return float(sizes.prod(axis=1).mean())


@cache
def _sampled(manifest: Path, root: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float64]] | None:
    """Widths and heights of some pictures, which their headers tell; ``None`` where there are none yet."""
    if not manifest.is_file():
        return None
    paths = [root / path for path in read_manifest(manifest)["path"]]
    sizes = []
    for path in sampled(paths):
        if path.is_file():
            with Image.open(path) as picture:
                sizes.append(picture.size)
    return np.array(sizes, dtype=np.float64) if sizes else None
