"""Pictures and maps in the data of a figure, and how they are drawn.

The data name a picture by its path and keep a map as its cells, ``row, column, value``; both are put together when the
figure is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from lookalike.data.pictures import read_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TILE_PX = 64  # side of a drawn picture
COLOURS = 32  # of a picture under a map: with its size, what keeps a file with dozens of them small
PAGE_WIDTH = 6.9  # inches, both columns
CLASS_COLOURS = np.array([[220, 60, 30], [30, 110, 220]], np.uint8)  # of the first and the second class
PAINT = 0.55  # share of the colour in what is painted over


def cells(heat: Tensor, **about: Any) -> pd.DataFrame:
    """Rows of a map ``(h, w)``: ``row, column, value``, and what it is about in each."""
    grid = heat.detach().cpu().double().numpy()
    row, column = np.indices(grid.shape)
    return pd.DataFrame({**about, "row": row.ravel(), "column": column.ravel(), "value": grid.ravel()})


def grid(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Map ``(h, w)`` from its cells."""
    values: NDArray[np.float64] = rows.pivot_table(index="row", columns="column", values="value").to_numpy()
    return values


def photograph(rows: pd.DataFrame) -> NDArray[np.uint8]:
    """Crop of a picture ``(TILE_PX, TILE_PX, 3)``, from a single row with ``picture, resize_px, crop_px``."""
    from PIL import Image

    from lookalike.training.images import Images

    [row] = rows.to_dict("records")
    view = {"crop_px": int(row["crop_px"]), "resize_px": None if pd.isna(row["resize_px"]) else int(row["resize_px"])}
    pixels = Images([Path(row["picture"])], view)[0, 0][0].permute(1, 2, 0).numpy()
    return np.asarray(Image.fromarray(pixels).resize((TILE_PX, TILE_PX), Image.Resampling.BICUBIC))


def whole(path: str) -> NDArray[np.uint8]:
    """A picture of any proportions, pressed into a square ``(TILE_PX, TILE_PX, 3)``."""
    from PIL import Image

    return np.asarray(read_picture(Path(path)).resize((TILE_PX, TILE_PX), Image.Resampling.BICUBIC))


def under(picture: NDArray[np.uint8], heat: NDArray[np.float64]) -> NDArray[np.uint8]:
    """A picture, grey, under a map of any size, brought to [0, 1] by itself."""
    import torch
    from PIL import Image

    from lookalike.methods.sam.masks import heat_map

    fine = heat_map(torch.tensor(heat, dtype=torch.float32), (picture.shape[0], picture.shape[1]))
    few = Image.fromarray(_heated(picture, fine.numpy())).quantize(COLOURS, dither=Image.Dither.NONE)
    return np.asarray(few.convert("RGB"))


def _heated(picture: NDArray[np.uint8], heat: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A grey picture ``(h, w, 3)`` under a map ``(h, w)`` from 0 (blue) to 1 (yellow)."""
    from matplotlib import colormaps

    colours = colormaps["viridis"](heat)[..., :3] * 255
    grey = picture.mean(axis=2, keepdims=True)
    shown: NDArray[np.uint8] = (0.35 * grey + 0.65 * colours).round().astype(np.uint8)
    return shown


def painted(picture: NDArray[np.uint8], regions: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A picture ``(h, w, 3)`` with each of its regions ``(W, h, w)`` in its class's colour."""
    shown = picture.astype(np.float32)
    for region, colour in zip(regions, CLASS_COLOURS, strict=False):
        shown[region] = (1 - PAINT) * shown[region] + PAINT * colour
    return shown.round().astype(np.uint8)


def tile(axes: Axes, picture: NDArray[np.uint8], frame: tuple[str, str] | None = None) -> None:
    """Draw a picture without scales, in a frame of ``(colour, line)`` if there is one."""
    axes.imshow(picture, interpolation="none")  # as it is in an SVG
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(frame is not None)
    if frame is not None:
        axes.spines[:].set(color=frame[0], linestyle=frame[1], linewidth=1.6)
