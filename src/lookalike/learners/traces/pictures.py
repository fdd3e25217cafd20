"""The pictures of a trace: waves, a class is their direction, in the layouts that manifests have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from lookalike.data import write_manifest

SIDE = 64
TRAINING, TESTED = range(10), range(10, 18)  # classes
PER_CLASS = 5
IN_QUERY = 2  # of the pictures of a tested class; the others make the gallery
CAMERAS = 2
SCENES = range(1, 5)  # classes of the scenes, two in each fold


def write_pictures(folder: Path, specification: Mapping[str, Any]) -> str:
    """Write training and test pictures as a data set has them.

    Args:
        folder: folder to write the pictures to.
        specification: content of the data set's file: where test pictures do not search their own set there are queries
            and gallery, and a layout of CUHK03 has cameras, each with a tint of its own.

    Returns:
        Path of the manifest.
    """
    rows = []
    cameras = specification["layout"] == "cuhk03"
    for label in (*TRAINING, *TESTED):
        for number in range(PER_CLASS):
            path, camera = f"{label}-{number}.png", number % CAMERAS
            Image.fromarray(_wave(label, number, camera if cameras else 0)).save(folder / path)
            role = "train" if label in TRAINING else "test"
            if role == "test" and not specification["self_match"]:
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
