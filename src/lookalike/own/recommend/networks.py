"""The networks at hand, each of which is measured untrained, and from one of which methods are trained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torchvision import models

from lookalike.checks import require_known
from lookalike.models.backbones import BACKBONES, build_network, load_weights
from lookalike.own.arguments import UNTRAINED, check_size, given_weights
from lookalike.own.models import CROP_PX, RESIZE_PX, last_map

TINY = "tiny"  # the project's own, which is always there
TINY_WEIGHTS = "params/starts/tiny.safetensors"
TINY_VIEW = {"resize_px": 64, "crop_px": 56}  # that it has learned from
CACHED = ("resnet50", "resnet18", "squeezenet1_1")  # looked for where torchvision keeps its weights


@dataclass(frozen=True)
class Network:
    """A network with weights.

    Attributes:
        name: that tables show; unique among those of a call.
        backbone: section ``train.backbone`` of recipes that start from it.
        view: ``resize_px`` and ``crop_px`` of its test pictures.
    """

    name: str
    backbone: dict[str, Any]
    view: dict[str, int]

    @property
    def model(self) -> str:
        """As ``lookalike search`` takes it, untrained."""
        weights = str(self.backbone["weights"])
        return f"{UNTRAINED}{self.backbone['name']}" + ("" if weights.isupper() else f"={weights}")

    @property
    def slug(self) -> str:
        """Its name as a part of names of files."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")


def networks_at_hand(given: Sequence[str], *, size_px: int) -> list[Network]:
    """Networks in the order in which training is tried from them: as given, cached ones of torchvision, `TINY`.

    Args:
        given: ``NAME=FILE`` each, a classifier of torchvision or `TINY` with weights in torchvision's layout.
        size_px: side of the pictures of all but `TINY`.

    Raises:
        ValueError: for another form, an unknown network, a file that is not there, or weights that do not fit.
    """
    check_size(size_px)
    view = {"resize_px": round(size_px * RESIZE_PX / CROP_PX), "crop_px": size_px}
    found: dict[str, Network] = {}
    for text in given:
        name, file = given_weights(text)
        require_known("--weights", name, {*BACKBONES, *models.list_models(models)})
        path = file.absolute()
        load_weights(build_network(name), name, str(path))  # so that a file of another network is refused now
        numbered = (f"{name} ({path.stem}, {number})" for number in range(2, len(found) + 2))
        free = next(each for each in (name, f"{name} ({path.stem})", *numbered) if each not in found)
        found[free] = Network(free, _backbone(name, str(path)), TINY_VIEW if name == TINY else view)
    named = {each.backbone["name"] for each in found.values()}
    cached = [Network(name, _backbone(name, "IMAGENET1K_V1"), view) for name in CACHED if _is_cached(name)]
    others = [*cached, Network(TINY, _backbone(TINY, TINY_WEIGHTS), TINY_VIEW)]
    return [*found.values(), *(each for each in others if each.name not in named)]


def _backbone(name: str, weights: str) -> dict[str, Any]:
    stages = {} if name in BACKBONES else {"stages": [last_map(build_network(name))]}
    return {"name": name, "weights": weights, "batch_norm": "frozen", **stages}


def _is_cached(name: str) -> bool:
    url = str(models.get_model_weights(name)["IMAGENET1K_V1"].url)
    return (Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]).is_file()
