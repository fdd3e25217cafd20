"""Maps laid over their pictures."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

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
