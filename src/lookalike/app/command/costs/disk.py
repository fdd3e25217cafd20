"""Bytes that a call needs on disk: archives, models, smaller copies of pictures and decoded ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
from PIL import Image

from lookalike.app.command.costs.jobs import READING, Job, strangers_of
from lookalike.app.own.step_cost import crop_size
from lookalike.base.paths import project_root
from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.decoded import GB, fixed_keys, sampled
from lookalike.workflow.data.roles import EMBEDDED, SEARCHED
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.scales import Dataset
from lookalike.workflow.plan.sizes import role_sizes
from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.recipes import Network, Train, View

BYTES = 4  # of a float32 number
MODELS_OF_A_RUN = 2  # of its best and of its last epoch
PROPORTION = 4 / 3  # of a photograph's sides, where no picture is at hand
# Bytes a pixel of 543 photographs of birds, 500 px wide, resized to a shorter side of 288.
BYTES_A_PIXEL = {"jpeg": 0.15, "png": 1.55}

Form = tuple[str, str, str, str]  # data set, half of its classes that trains, role and the fixed part of a view


def archive_bytes(dataset: Dataset) -> int | None:
    """Bytes to download for a data set: the required archives of its smallest packaging.

    Returns:
        0 for data that are on disk, read in place or drawn; ``None`` where no packaging states all its sizes.
    """
    about = dataset.about
    if about.generator or about.folder or about.archive or (project_root() / dataset.record).is_file():
        return 0
    packagings: dict[str, list[int | None]] = {}
    for archive in about.archives:
        if not archive.optional:
            packagings.setdefault(archive.packaging, []).append(archive.size)
    stated = [sum(filter(None, sizes)) for sizes in packagings.values() if None not in sizes]
    return min(stated, default=None)


def model_bytes(train: Train) -> int:
    """Bytes of a training's file: the network once per checkpoint, without losses and their proxies."""
    return _numbers_of(canonical(_of_network(train).dump())) * BYTES * MODELS_OF_A_RUN


def _of_network(train: Train) -> Network:
    """The settings that decide a network's size, without weights to download."""
    return Network(
        backbone=train.backbone.model_copy(update={"weights": None, "batch_norm": "trained"}),
        embedding=train.embedding.model_copy(update={"initialisation": "default"}),
        method=train.method,
        test_image=View(crop_px=train.test_image.crop_px),
    )


@cache
def _numbers_of(network: str) -> int:
    """Numbers of a network's state."""
    import torch

    from lookalike.workflow.training.methods import LEARNERS

    chosen = Network(**json.loads(network))
    with torch.device("meta"):
        built = LEARNERS[chosen.method.name].build(chosen)
    return sum(tensor.numel() for tensor in built.state_dict().values())


@dataclass(frozen=True)
class Decoded:
    """Bytes of decoded pictures, with the numbers of splits and views over the limit and of unknown size.

    Attributes:
        test_bytes: of pictures that are searched, or represented.
        training_bytes: of those that are learned from, as their random crop finds them; the limit where it is unknown.
        beyond: how many splits and views are over the limit, and are decoded whenever they are read.
        unknown: how many are counted as the limit.
        least_bytes: of those whose size is known.
    """

    test_bytes: int
    training_bytes: int
    beyond: int
    unknown: int
    least_bytes: int


def copies_bytes(plan: Plan, names: Iterable[str]) -> dict[str, int | None]:
    """Bytes of smaller copies, by data set; ``None`` where the pictures have not been counted.

    Args:
        plan: of the call.
        names: data sets that are read.
    """
    sizes: dict[str, int | None] = {}
    for name in names:
        if cache_of := plan.picture_cache_of(name):
            dataset = plan.datasets[name]
            count = sum(images for images, _ in role_sizes(dataset).values())
            pixels = _pixels(dataset, None, resize_px=cache_of.shorter_side_px)
            each = None if pixels is None else pixels * BYTES_A_PIXEL[cache_of.encoding]
            sizes[name] = round(count * each) if count and each else None
    return sizes


def decoded_bytes(plan: Plan, jobs: list[Job]) -> Decoded:
    """Bytes of the pictures that are decoded once for all runs.

    Args:
        plan: of the call.
        jobs: of the call.
    """
    limit = round(plan.decoded_gb * GB)
    sizes = {"train": 0, "test": 0}
    beyond = unknown = 0
    for dataset, half, role, view in _forms(plan, jobs):
        count = role_sizes(plan.datasets[dataset], half).get(role, (0, 0))[0]
        cache = plan.picture_cache_of(dataset)
        pixels = _pixels(plan.datasets[dataset], cache.shorter_side_px if cache else None, **json.loads(view))
        size = round(3 * pixels * count) if pixels and count else None
        if size is not None and size > limit:
            beyond += 1
        else:
            unknown += size is None
            sizes["train" if role == "train" else "test"] += limit if size is None else size
    return Decoded(sizes["test"], sizes["train"], beyond, unknown, sum(sizes.values()) - unknown * limit)


def _forms(plan: Plan, jobs: list[Job]) -> set[Form]:
    """Each split and view that is decoded once, however many runs read it."""
    forms: set[Form] = set()
    for job in jobs:
        if job.stage not in READING:
            continue
        recipe = plan.settings(job.recipe, job.dataset)
        train = recipe.train
        known = set(EMBEDDED) & role_sizes(plan.datasets[job.dataset]).keys() or {"test"}
        searched = canonical(fixed_keys(train.test_image))
        own = job.dataset, plan.half_of(job.dataset, job.seed)
        if job.stage == "evaluate":
            forms |= {(*own, role, searched) for role in known}
            if recipe.embed.training_pictures:
                forms.add((*own, "train", searched))
        elif train.loss is not None:
            forms |= {(*own, role, searched) for role in known.intersection(SEARCHED)}
            read = {job.dataset, *strangers_of(plan, [job])}
            forms |= {
                (name, plan.half_of(name, job.seed), "train", canonical(fixed_keys(train.image))) for name in read
            }
    return forms


def _pixels(
    dataset: Dataset, copy_px: int | None, *, resize_px: int | list[int] | None, crop_px: int | list[int] | None = None
) -> float | None:
    """Pixels of a picture as the fixed part of a view leaves it, on average; ``None`` where nothing tells."""
    if crop_px is not None:
        return float(prod(crop_size(View(crop_px=crop_px))))
    if isinstance(resize_px, list):
        return float(prod(resize_px))
    side = resize_px or copy_px
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
