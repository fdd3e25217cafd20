"""How many bytes a call needs on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import nn

from lookalike.command.costs.hours import crop_size
from lookalike.data.roles import EMBEDDED
from lookalike.learners import LEARNERS
from lookalike.learners.representations import REPRESENTATIONS
from lookalike.learners.saved import CHECKPOINTS
from lookalike.parameters import canonical
from lookalike.paths import project_root
from lookalike.plan.scales import Dataset
from lookalike.plan.sizes import role_sizes
from lookalike.training.learner import named

BYTES = 4  # of a float32 number


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
    return _network_size(canonical(_of_network(train))) * BYTES * len(CHECKPOINTS)


def embeddings_bytes(sections: Mapping[str, Any], dataset: Dataset) -> int | None:
    """What the representations of a data set's pictures take, once per checkpoint; ``None`` if their number is unknown.

    Args:
        sections: of the recipe, ``train`` and ``embed``.
        dataset: whose pictures are represented.
    """
    wanted = (*EMBEDDED, "train") if sections["embed"]["training_pictures"] else EMBEDDED
    pictures = sum(images for role, (images, _) in role_sizes(dataset).items() if role in wanted)
    each = _representation_size(
        canonical(_of_network(sections["train"])), canonical(sections["embed"]["representation"])
    )
    return pictures * each * BYTES * len(CHECKPOINTS) or None


def _of_network(train: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that decide a network's size, without weights to download."""
    kept = {key: train[key] for key in ("method", "embedding", "test_image")}
    return kept | {"backbone": {**train["backbone"], "weights": None}}


def _network(settings: str) -> nn.Module:
    """A network of zeros: drawing random weights would take longer than all else here."""
    chosen = json.loads(settings)
    with torch.device("meta"):
        network = LEARNERS[chosen["method"]["name"]].build(chosen).eval()
    network.to_empty(device="cpu")
    for tensor in network.state_dict().values():
        tensor.zero_()
    return network


@cache
def _network_size(settings: str) -> int:
    return sum(tensor.numel() for tensor in _network(settings).state_dict().values())


@cache
def _representation_size(settings: str, representation: str) -> int:
    """Numbers per picture, seen on one without content."""
    chosen = json.loads(settings)
    name, options = named(json.loads(representation))
    represent = REPRESENTATIONS[name](LEARNERS[chosen["method"]["name"]], seed=0, **options)
    with torch.inference_mode():
        kept = represent(_network(settings), torch.zeros(1, 3, *crop_size(chosen["test_image"])))
    return sum(tensor.numel() for tensor in kept.values())
