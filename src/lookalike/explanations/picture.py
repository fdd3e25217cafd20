"""Explanations as pictures: maps laid over the images that they explain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from lookalike.base.files import replacing
from lookalike.explanations.explanation import ROLES, Explanation
from lookalike.explanations.words import colours, sentence

FOR, AGAINST = (235, 75, 10), (30, 110, 230)  # colours of what is above and below zero
STRONGEST = 0.75  # share of the colour where a map is largest
CONTRAST = 1.5  # power of a value in its colour: otherwise maps without a zero hide their pictures
FRAMED = "The frame holds what the model sees."
FRAMES = 160  # lines of a frame that the longer side of a picture would hold

Part = tuple[float, float, float, float]
WHOLE: Part = (0.0, 0.0, 1.0, 1.0)


def overlaid(picture: Image.Image, values: Tensor, part: Part = WHOLE) -> Image.Image:
    """A picture in grey, with a map in colour: orange above zero, blue below, stronger where the map is.

    Args:
        picture: in RGB.
        values: ``(h, w)`` of any size, signed.
        part: of the picture that the map is of, left, top, width and height as fractions of the picture's; a frame is
            drawn round one that is not the whole.
    """
    left, top, width, height = (
        round(each * side) for each, side in zip(part, (picture.width, picture.height) * 2, strict=True)
    )
    size = (max(1, height), max(1, width))
    finer = torch.nn.functional.interpolate(values[None, None].double(), size, mode="bilinear", align_corners=False)
    shown: NDArray[np.float64] = finer[0, 0].cpu().numpy()[max(0, -top) :, max(0, -left) :]  # without a view's padding
    pixels = np.array(picture.convert("L").convert("RGB"), dtype=np.float64)
    seen = pixels[max(0, top) : top + size[0], max(0, left) : left + size[1]]
    shown = shown[: len(seen), : seen.shape[1]]
    largest = np.abs(shown).max() or 1.0
    strength = (STRONGEST * (np.abs(shown) / largest) ** CONTRAST)[..., None]
    seen[:] = seen * (1 - strength) + np.where(shown[..., None] >= 0, FOR, AGAINST) * strength
    drawn = Image.fromarray(pixels.round().astype(np.uint8))
    if part != WHOLE:
        line = max(1, max(drawn.size) // FRAMES)
        edges = (left, top, left + width - 1, top + height - 1)
        ImageDraw.Draw(drawn).rectangle(edges, outline="black", width=2 * line)
        ImageDraw.Draw(drawn).rectangle(edges, outline="white", width=line)
    return drawn


def overlays(
    explanation: Explanation, pictures: Sequence[Image.Image], parts: Sequence[Part], row: int = 0
) -> list[Image.Image]:
    """The pictures of one pair or triplet, each with its map over the part that was seen, as `overlaid` takes both."""
    together = zip(pictures, explanation.maps, parts, strict=True)
    return [overlaid(picture, seen[row], part) for picture, seen, part in together]


def legend(explanation: Explanation, parts: Sequence[Part]) -> list[str]:
    """Meaning of the colours of overlays, and of their frames if they have any, a sentence each."""
    return [colours(explanation), *([FRAMED] if any(part != WHOLE for part in parts) else [])]


def draw(
    explanation: Explanation, pictures: Sequence[Image.Image], parts: Sequence[Part], path: Path, row: int = 0
) -> None:
    """Write a PNG: the pictures of one pair or triplet, below them the same with their maps, and the explanation.

    Raises:
        OSError: if it cannot be written.
    """
    from matplotlib.figure import Figure

    count = len(pictures)
    figure = Figure(figsize=(3.2 * count, 7.2), layout="constrained", dpi=120)
    panels = figure.subplots(2, count)
    for column, pair in enumerate(zip(pictures, overlays(explanation, pictures, parts, row), strict=True)):
        for panel, shown in zip(panels[:, column], pair, strict=True):
            panel.imshow(shown)
            panel.axis("off")
        panels[0, column].set_title(ROLES[column])
    figure.supxlabel(f"{sentence(explanation, row)}\n{' '.join(legend(explanation, parts))}", fontsize=9, wrap=True)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")
