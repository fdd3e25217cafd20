"""Inputs of a trace that do not depend on the machine: float64, draws that numpy makes instead of torch, and pictures.

Torch promises the same draws for the same version and build only: its exponential numbers, for one, come from another
library where it is built with MKL. Numpy's Philox is counted, and the same everywhere. The pictures are waves, a class
is their direction, in the layouts that manifests have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lookalike.workflow.data import write_manifest
from lookalike.workflow.settings.datasets import Dataset

Draw = Callable[..., NDArray[Any]]  # of generator, the tensor to fill and the operator's other arguments
aten = torch.ops.aten
SEEDS_ONLY = (aten.random_,)  # with which a data loader seeds processes that a trace does not have
SIDE = 64
TRAINING, TESTED = range(10), range(10, 18)  # classes
PER_CLASS = 5
IN_QUERY = 2  # of the pictures of a tested class; the others make the gallery
CAMERAS = 2
SCENES = range(1, 5)  # classes of the scenes, two in each fold


def _uniform(random: np.random.Generator, like: Tensor, low: float = 0.0, high: float = 1.0) -> NDArray[Any]:
    return low + (high - low) * random.random(like.shape)


def _normal(random: np.random.Generator, like: Tensor, mean: float = 0.0, deviation: float = 1.0) -> NDArray[Any]:
    return mean + deviation * random.standard_normal(like.shape)


def _exponential(random: np.random.Generator, like: Tensor, rate: float = 1.0) -> NDArray[Any]:
    return random.standard_exponential(like.shape) / rate


def _permutation(random: np.random.Generator, like: Tensor, *_: Any) -> NDArray[Any]:
    return random.permutation(len(like))


def _integers(random: np.random.Generator, like: Tensor, *limits: int) -> NDArray[Any]:
    low, high = limits if len(limits) == 2 else (0, *limits)
    values: NDArray[Any] = random.integers(low, high, size=tuple(like.shape))
    return values


def _columns(random: np.random.Generator, like: Tensor, weights: Tensor, *_: Any) -> NDArray[Any]:
    if like.shape[-1] != 1:
        raise ValueError(f"a trace draws one column of each row, not {like.shape[-1]}")
    shares = weights.detach().double().cumsum(-1).numpy()
    places: NDArray[Any] = random.random((*like.shape[:-1], 1)) * shares[..., -1:]
    columns: NDArray[Any] = (shares < places).sum(axis=-1, keepdims=True)
    return columns


IN_PLACE: dict[Any, Draw] = {aten.uniform_: _uniform, aten.normal_: _normal, aten.exponential_: _exponential}
# Of the arguments only those that do not say the shape are passed on.
NEW: dict[Any, tuple[Draw, Callable[..., tuple[Any, ...]]]] = {
    aten.rand: (_uniform, lambda *_: ()),
    aten.randn: (_normal, lambda *_: ()),
    aten.randperm: (_permutation, lambda *_: ()),
    aten.randint: (_integers, lambda *limits: limits[:-1]),
    aten.multinomial: (_columns, lambda *arguments: arguments[:1]),
}


class _Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fills all that torch draws with numbers of numpy's generator."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.random = np.random.Generator(np.random.Philox(seed))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet in IN_PLACE:
            values = IN_PLACE[packet](self.random, result, *args[1:])
        elif packet in NEW:
            draw, select = NEW[packet]
            values = draw(self.random, result, *select(*args))
        elif torch.Tag.nondeterministic_seeded in func.tags and packet not in SEEDS_ONLY:
            raise ValueError(
                f"a trace has no draws for {packet}; give it some in lookalike.workflow.training.traces.inputs"
            )
        else:
            return result
        return result.copy_(torch.from_numpy(np.asarray(values)))


@contextmanager
def same_everywhere(seed: int) -> Iterator[None]:
    """Inside, torch computes in float64 and draws the numbers of numpy's Philox for a seed.

    Raises:
        ValueError: at a kind of draw that has no counterpart here.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Draws(seed):
            yield
    finally:
        torch.set_default_dtype(before)


def write_pictures(folder: Path, specification: Dataset) -> str:
    """Write training and test pictures as a data set has them.

    Args:
        folder: folder to write the pictures to.
        specification: content of the data set's file: where test pictures do not search their own set there are queries
            and gallery, and a layout of CUHK03 has cameras, each with a tint of its own.

    Returns:
        Path of the manifest.
    """
    rows = []
    cameras = specification.layout == "cuhk03"
    for label in (*TRAINING, *TESTED):
        for number in range(PER_CLASS):
            path, camera = f"{label}-{number}.png", number % CAMERAS
            Image.fromarray(_wave(label, number, camera if cameras else 0)).save(folder / path)
            role = "train" if label in TRAINING else "test"
            if role == "test" and not specification.self_match:
                role = "query" if number < IN_QUERY else "gallery"
            rows.append((path, label, role, label // 2, label // 4, camera))
    frame = pd.DataFrame(rows, columns=["path", "label", "role", "coarse_family", "coarse_order", "camera"])
    write_manifest(frame if cameras else frame.drop(columns="camera"), folder / "manifest.csv")
    return str(folder / "manifest.csv")


def write_scenes(folder: Path) -> str:
    """Write pictures with masks, as episodes take them: a striped box of the class's colour on a wave.

    The first picture of each class also shows a smaller box of the other class of its fold.

    Returns:
        Path of the manifest.
    """
    rows = []
    for label in SCENES:
        other = next(each for each in SCENES if each % 2 == label % 2 and each != label)
        for number in range(PER_CLASS):
            picture, mask = _wave(label, number), np.zeros((SIDE, SIDE), np.uint8)
            top, left = 6 + 4 * number, 34 - 6 * number
            mask[top : top + 24, left : left + 24] = label
            if number == 0:
                mask[40:56, 8:24] = other
            for shown in (label, other):
                picture[mask == shown] = picture[mask == shown] // 4 + np.eye(4)[shown - 1, :3].astype(np.uint8) * 190
            Image.fromarray(picture).save(folder / f"scene-{label}-{number}.png")
            image = Image.fromarray(mask)
            image.putpalette(list(range(256)) * 3)
            image.save(folder / f"mask-{label}-{number}.png")
            labels = (label, other) if number == 0 else (label,)
            rows += [
                (f"scene-{label}-{number}.png", shown, "test", label % 2, f"mask-{label}-{number}.png")
                for shown in labels
            ]
    frame = pd.DataFrame(rows, columns=["path", "label", "role", "fold", "mask"])
    write_manifest(frame, folder / "scenes.csv")
    return str(folder / "scenes.csv")


def _wave(label: int, number: int, camera: int = 0) -> NDArray[np.uint8]:
    """``(SIDE, SIDE, 3)``: the direction is the class's; length, phase, colour and noise are the picture's."""
    random = np.random.Generator(np.random.Philox([label, number]))
    y, x = np.mgrid[:SIDE, :SIDE]
    direction = np.pi * label / (len(TRAINING) + len(TESTED))
    across = x * np.cos(direction) + y * np.sin(direction)
    wave = np.sin(random.uniform(0.35, 0.5) * across + random.uniform(0, 2 * np.pi))
    pixels = 128 + wave[..., None] * random.uniform(30, 90, 3) + random.normal(0, 20, (SIDE, SIDE, 3))
    pixels = pixels + camera * np.array([45, 0, -45])
    whole: NDArray[np.uint8] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return whole
