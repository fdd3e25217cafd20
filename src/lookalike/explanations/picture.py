"""Explanations as pictures: maps laid over what they explain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from lookalike.base.files import replacing
from lookalike.explanations.explanation import ROLES, Explanation
from lookalike.explanations.words import colours, sentence

FOR, AGAINST = (235, 75, 10), (30, 110, 230)  # colours of what is above and below zero
STRONGEST = 0.75  # share of the colour where a map is largest
CONTRAST = 1.5  # power of a value in its colour: otherwise maps without a zero hide their pictures


def overlaid(picture: Image.Image, values: Tensor) -> Image.Image:
    """A picture in grey, with a map in colour: orange above zero, blue below, stronger where the map is.

    Args:
        picture: as the model sees it, in RGB.
        values: ``(h, w)`` of any size, signed.
    """
    size = (picture.height, picture.width)
    whole = torch.nn.functional.interpolate(values[None, None].double(), size, mode="bilinear", align_corners=False)
    shown: NDArray[np.float64] = whole[0, 0].cpu().numpy()
    largest = np.abs(shown).max() or 1.0
    strength = (STRONGEST * (np.abs(shown) / largest) ** CONTRAST)[..., None]
    colour = np.where(shown[..., None] >= 0, FOR, AGAINST)
    grey = np.asarray(picture.convert("L").convert("RGB"), dtype=np.float64)
    return Image.fromarray((grey * (1 - strength) + colour * strength).round().astype(np.uint8))


def overlays(explanation: Explanation, pictures: Sequence[Image.Image], row: int = 0) -> list[Image.Image]:
    """The pictures of one pair or triplet, each with its map."""
    return [overlaid(picture, seen[row]) for picture, seen in zip(pictures, explanation.maps, strict=True)]


def draw(explanation: Explanation, pictures: Sequence[Image.Image], path: Path, row: int = 0) -> None:
    """Write a PNG: the pictures of one pair or triplet, below them the same with their maps, and the explanation.

    Raises:
        OSError: if it cannot be written.
    """
    from matplotlib.figure import Figure

    count = len(pictures)
    figure = Figure(figsize=(3.2 * count, 7.2), layout="constrained", dpi=120)
    panels = figure.subplots(2, count)
    for column, pair in enumerate(zip(pictures, overlays(explanation, pictures, row), strict=True)):
        for panel, shown in zip(panels[:, column], pair, strict=True):
            panel.imshow(shown)
            panel.axis("off")
        panels[0, column].set_title(ROLES[column])
    figure.supxlabel(f"{sentence(explanation, row)}\n{colours(explanation)}", fontsize=9, wrap=True)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")
