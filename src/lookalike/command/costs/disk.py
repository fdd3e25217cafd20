"""How many bytes a call needs on disk: archives, models, embeddings, smaller copies of pictures and decoded ones."""

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

from lookalike.command.costs.jobs import Job, strangers_of
from lookalike.data import read_manifest
from lookalike.data.decoded import GB, fixed_keys, sampled
from lookalike.data.roles import EMBEDDED, SEARCHED
from lookalike.metrics.names import CHECKPOINTS
from lookalike.own.step_cost import crop_size
from lookalike.paths import project_root
from lookalike.plan.plan import Plan
from lookalike.plan.scales import Dataset
from lookalike.plan.sizes import role_sizes
from lookalike.settings.layers import canonical

BYTES = 4  # of a float32 number
OWN = {"name": "own"}  # the representation of the method itself
PROPORTION = 4 / 3  # of a photograph's sides, where no picture is at hand
# Bytes a pixel of 543 photographs of birds, 500 px wide, resized to a shorter side of 288.
BYTES_A_PIXEL = {"jpeg": 0.15, "png": 1.55}

Form = tuple[str, str, str]  # data set, role and the fixed part of a view


def archive_bytes(dataset: Dataset) -> int | None:
    """What is to be downloaded for a data set: the required archives of its smallest packaging.

    Returns:
        0 for data that are on disk, read in place or drawn; ``None`` where no packaging states all its sizes.
    """
    specification = dataset.specification
    local = {"generator", "folder", "archive"} & specification.keys()
    if local or (project_root() / dataset.record).is_file():
        return 0
    packagings: dict[str, list[int | None]] = {}
    for archive in specification.get("archives", ()):
        if not archive.get("optional"):
            packagings.setdefault(archive.get("packaging", ""), []).append(archive.get("size"))
    stated = [sum(filter(None, sizes)) for sizes in packagings.values() if None not in sizes]
    return min(stated, default=None)


def model_bytes(train: Mapping[str, Any]) -> int:
    """What the file of a training takes: the network, once per checkpoint; losses and their proxies are left out."""
    return _numbers(train, OWN)[0] * BYTES * len(CHECKPOINTS)


def embeddings_bytes(sections: Mapping[str, Any], dataset: Dataset) -> int | None:
    """What the representations of a data set's pictures take, once per checkpoint; ``None`` if their number is unknown.

    Args:
        sections: of the recipe, ``train`` and ``embed``.
        dataset: whose pictures are represented.
    """
    wanted = (*EMBEDDED, "train") if sections["embed"]["training_pictures"] else EMBEDDED
    pictures = sum(images for role, (images, _) in role_sizes(dataset).items() if role in wanted)
    each = _numbers(sections["train"], sections["embed"]["representation"])[1]
    return pictures * each * BYTES * len(CHECKPOINTS) or None


def _of_network(train: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that decide a network's size, without weights to download."""
    view = {"crop_px": train["test_image"]["crop_px"]}
    kept_as = {"method": train["method"], "embedding": {**train["embedding"], "initialisation": "default"}}
    return kept_as | {"test_image": view, "backbone": {**train["backbone"], "weights": None, "batch_norm": "trained"}}


def _numbers(train: Mapping[str, Any], representation: Mapping[str, Any]) -> list[int]:
    """Numbers of a network, and of what it keeps of a picture."""
    return list(_numbers_of(canonical(_of_network(train)), canonical(representation)))


@cache
def _numbers_of(settings: str, representation: str) -> tuple[int, int]:
    return numbers_of(json.loads(settings), json.loads(representation))


def numbers_of(chosen: Mapping[str, Any], representation: Mapping[str, Any]) -> tuple[int, int]:
    """Numbers of a network's state, and of a picture's representation by it.

    Args:
        chosen: what of a recipe's ``train`` section decides a network's size: ``method``, ``embedding``, ``backbone``,
            ``test_image``.
        representation: section ``embed.representation``.
    """
    import torch

    from lookalike.training.evaluation import REPRESENTATIONS
    from lookalike.training.learner import named
    from lookalike.training.methods import LEARNERS

    method = chosen["method"]["name"]
    with torch.device("meta"):
        network = LEARNERS[method].build(chosen).eval()
    network.to_empty(device="cpu")
    for tensor in network.state_dict().values():
        tensor.zero_()  # drawing random weights would take longer than all else here
    numbers = sum(tensor.numel() for tensor in network.state_dict().values())
    name, options = named(representation)
    represent = REPRESENTATIONS[name](LEARNERS[method], seed=0, **options)
    with torch.inference_mode():
        kept = represent(network, torch.zeros(1, 3, *crop_size(chosen["test_image"])))
    return numbers, sum(tensor.numel() for tensor in kept.values())


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
