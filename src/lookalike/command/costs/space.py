"""How many bytes a call needs on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lookalike.data.roles import EMBEDDED
from lookalike.parameters import canonical
from lookalike.paths import project_root
from lookalike.plan.scales import Dataset
from lookalike.plan.sizes import role_sizes
from lookalike.sources.kept import kept

BYTES = 4  # of a float32 number
CHECKPOINTS = 2  # the last epoch and the best
_seen: dict[str, int] = {}  # numbers of networks


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
    return _network_size(canonical(_of_network(train))) * BYTES * CHECKPOINTS


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
    return pictures * each * BYTES * CHECKPOINTS or None


def _of_network(train: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that decide a network's size, without weights to download."""
    view = {"crop_px": train["test_image"]["crop_px"]}
    kept_as = {"method": train["method"], "embedding": {**train["embedding"], "initialisation": "default"}}
    return kept_as | {"test_image": view, "backbone": {**train["backbone"], "weights": None, "batch_norm": "trained"}}


def _network_size(settings: str) -> int:
    """Numbers of its state; whoever has asked for a representation has them at hand."""
    return _seen.get(settings) or kept(f"numbers of {settings}", lambda: _sizes(settings, None)[0])


def _representation_size(settings: str, representation: str) -> int:
    """Numbers per picture."""
    network, numbers = kept(f"numbers of {settings} for {representation}", lambda: _sizes(settings, representation))
    _seen[settings] = network
    return numbers


def _sizes(settings: str, representation: str | None) -> list[int]:
    from lookalike.command.costs.built import numbers_of  # a second of imports, for what is not kept yet

    return list(numbers_of(json.loads(settings), None if representation is None else json.loads(representation)))
