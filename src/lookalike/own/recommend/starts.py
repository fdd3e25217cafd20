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
from lookalike.own.asked import UNTRAINED, check_size, given_weights
from lookalike.own.models import CROP_PX, RESIZE_PX, last_map

TINY = "tiny"  # the project's own, which is always there
TINY_WEIGHTS = "params/starts/tiny.safetensors"
TINY_VIEW = {"resize_px": 64, "crop_px": 56}  # that it has learned from
CACHED = ("resnet50", "resnet18", "squeezenet1_1")  # looked for where torchvision keeps its weights


@dataclass(frozen=True)
class Start:
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


def starts_at_hand(given: Sequence[str], *, size_px: int) -> list[Start]:
    """Networks in the order in which training is tried from them: as given, cached ones of torchvision, `TINY`.

    Args:
        given: ``NAME=FILE`` each, a classifier of torchvision or `TINY` with weights in torchvision's layout.
        size_px: side of the pictures of all but `TINY`.

    Raises:
        ValueError: for another form, an unknown network, a file that is not there, or weights that do not fit.
    """
    check_size(size_px)
    found: list[Start] = []
    for text in given:
        found.append(_given(text, size_px, {each.name for each in found}))
    named = {str(each.backbone["name"]) for each in found}
    for name in CACHED:
        if name not in named and _is_cached(name):
            found.append(Start(name, _backbone(name, "IMAGENET1K_V1"), _view(name, size_px)))
    if TINY not in named:
        found.append(Start(TINY, _backbone(TINY, TINY_WEIGHTS), dict(TINY_VIEW)))
    return found


def _given(text: str, size_px: int, taken: set[str]) -> Start:
    name, file = given_weights(text)
    require_known("--weights", name, {*BACKBONES, *models.list_models(models)})
    path = file.absolute()
    backbone = _backbone(name, str(path))
    load_weights(build_network(name), name, str(path))  # so that a file of another network is refused now
    names = (name, f"{name} ({path.stem})", *(f"{name} ({path.stem}, {number})" for number in range(2, len(taken) + 2)))
    return Start(next(each for each in names if each not in taken), backbone, _view(name, size_px))


def _backbone(name: str, weights: str) -> dict[str, Any]:
    backbone: dict[str, Any] = {"name": name, "weights": weights, "batch_norm": "frozen"}
    if name not in BACKBONES:
        backbone["stages"] = [last_map(build_network(name))]
    return backbone


def _view(name: str, size_px: int) -> dict[str, int]:
    if name == TINY:
        return dict(TINY_VIEW)
    return {"resize_px": round(size_px * RESIZE_PX / CROP_PX), "crop_px": size_px}


def _is_cached(name: str) -> bool:
    url = str(models.get_model_weights(name)["IMAGENET1K_V1"].url)
    return (Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]).is_file()
