"""How many bytes a call needs on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.data.roles import EMBEDDED
from lookalike.metrics.names import CHECKPOINTS
from lookalike.paths import project_root
from lookalike.plan.scales import Dataset
from lookalike.plan.sizes import role_sizes
from lookalike.settings.layers import canonical
from lookalike.sources.kept import kept

BYTES = 4  # of a float32 number
OWN = {"name": "own"}  # the representation of the method itself


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
    settings = _of_network(train)

    def by_building() -> list[int]:
        from lookalike.command.costs.built import numbers_of  # seconds of imports, for what is not kept yet

        return list(numbers_of(settings, representation))

    return kept(f"numbers of {canonical(settings)} for {canonical(representation)}", by_building)
