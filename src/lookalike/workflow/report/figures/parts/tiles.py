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

from lookalike.workflow.data.pictures import read_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure, SubFigure

TILE_PX = 224  # side of a drawn picture: about the dots that a tile has in the PNG
PAGE_WIDTH = 6.9  # inches, both columns
BAR = 40  # lengths of a colour bar to its height
CLASS_COLOURS = np.array([[213, 94, 0], [0, 114, 178]], np.uint8)  # of the first and the second class: style.LOOKS
PAINT = 0.6  # share of the colour in what is painted over
COLOURS = "plasma"  # of maps: even steps of a map are even steps for the eye, also without colour
OPACITY = 0.85  # of the colour at the highest value of a map; at the lowest there is none
FADED = (60, 190)  # grey levels to which black and white of a picture under a map move, so that colours stand out


def cells(heat: Tensor, **about: Any) -> pd.DataFrame:
    """Rows of a map ``(h, w)``: ``row, column, value``, and the values of ``about`` in each."""
    grid = heat.detach().cpu().double().numpy()
    row, column = np.indices(grid.shape)
    return pd.DataFrame({**about, "row": row.ravel(), "column": column.ravel(), "value": grid.ravel()})


def grid(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Map ``(h, w)`` from its cells."""
    values: NDArray[np.float64] = rows.pivot_table(index="row", columns="column", values="value").to_numpy()
    return values


def photograph(rows: pd.DataFrame) -> NDArray[np.uint8]:
    """The part of a picture that a model sees, as fine as the file has it, up to ``(TILE_PX, TILE_PX, 3)``.

    Args:
        rows: a single one with ``picture, resize_px, crop_px``.
    """
    from lookalike.workflow.settings.recipes import View
    from lookalike.workflow.training.images import Images

    [row] = rows.to_dict("records")
    path = Path(row["picture"])
    shorter = min(read_picture(path).size) if pd.isna(row["resize_px"]) else row["resize_px"]
    view = View(resize_px=round(shorter * TILE_PX / row["crop_px"]), crop_px=TILE_PX)
    return Images([path], view)[0, 0][0]


def whole(path: str) -> NDArray[np.uint8]:
    """A picture of any proportions, pressed into a square ``(TILE_PX, TILE_PX, 3)``."""
    from PIL import Image

    return np.asarray(read_picture(Path(path)).resize((TILE_PX, TILE_PX), Image.Resampling.BICUBIC))


def under(picture: NDArray[np.uint8], heat: NDArray[np.float64]) -> NDArray[np.uint8]:
    """A picture, grey and faded, under the upper half of a map of any size.

    Colour and opacity rise from the map's median to its highest value; the half of the picture below it stays bare.
    """
    import torch

    from lookalike.methods.sam.masks import heat_map

    fine = heat_map(torch.tensor(heat, dtype=torch.float32), (picture.shape[0], picture.shape[1])).numpy()
    median = np.median(fine)
    upper = np.clip((fine - median) / max(1 - median, 1e-6), 0, 1)
    dark, bright = FADED
    grey = dark + (bright - dark) / 255 * picture.mean(axis=2, keepdims=True)
    return _heated(grey, upper)


def _heated(grey: NDArray[np.floating[Any]], heat: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Grey levels ``(h, w, 1)`` under the colours of a map ``(h, w)`` in [0, 1], whose opacity follows it too."""
    from matplotlib import colormaps

    colours = colormaps[COLOURS](heat)[..., :3] * 255
    opacity = OPACITY * heat[..., None]
    shown: NDArray[np.uint8] = ((1 - opacity) * grey + opacity * colours).round().astype(np.uint8)
    return shown


def map_colours() -> ListedColormap:
    """The colours of `under` over the grey between ``FADED``."""
    from matplotlib.colors import ListedColormap

    heat = np.linspace(0, 1, 256)[None]
    return ListedColormap(_heated(np.full((1, 1, 1), sum(FADED) / 2), heat)[0] / 255)


def colour_bar(figure: Figure | SubFigure, axes: NDArray[Any]) -> None:
    """Draw below tiles a bar with the meaning of their maps' colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(0, 1), map_colours())
    bar = figure.colorbar(scale, ax=axes, location="bottom", shrink=0.5, aspect=BAR, pad=0.02)
    bar.set_ticks([0, 1], labels=["up to the map's median", "its highest value"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def painted(picture: NDArray[np.uint8], regions: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A picture ``(h, w, 3)``, grey, with each of its regions ``(W, h, w)`` in its class's colour."""
    dark, bright = FADED
    grey = dark + (bright - dark) / 255 * picture.mean(axis=2, keepdims=True)
    shown = np.repeat(grey, 3, axis=2)
    for region, colour in zip(regions, CLASS_COLOURS, strict=False):
        shown[region] = (1 - PAINT) * shown[region] + PAINT * colour
    return shown.round().astype(np.uint8)


def tile(axes: Axes, picture: NDArray[np.uint8], frame: tuple[str, str] | None = None) -> None:
    """Draw a picture without scales, in a frame of ``(colour, line)`` if there is one."""
    axes.imshow(picture, interpolation="antialiased")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(frame is not None)
    if frame is not None:
        axes.spines[:].set(color=frame[0], linestyle=frame[1], linewidth=1.6)
