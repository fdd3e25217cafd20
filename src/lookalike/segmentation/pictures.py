"""Episodes as a grid of pictures: query, supports, attention, what was found and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Picture = NDArray[np.uint8]
CELL_PX = 160  # squares: pictures of all proportions stand in one column
WIDTH_INCHES = 3.4  # one column of a two-column page
COLOURS = np.array([[220, 60, 30], [30, 110, 220]], np.uint8)  # of the first and the second class
PAINT = 0.55  # share of the colour in what is painted over


def painted(picture: Picture, regions: NDArray[np.bool_]) -> Picture:
    """A picture ``(H, W, 3)`` with each of its regions ``(W, H, W)`` in its class's colour."""
    shown = picture.astype(np.float32)
    for region, colour in zip(regions, COLOURS, strict=False):
        shown[region] = (1 - PAINT) * shown[region] + PAINT * colour
    return shown.round().astype(np.uint8)


def heated(picture: Picture, heat: NDArray[np.float32]) -> Picture:
    """A grey picture ``(H, W, 3)`` under a map ``(H, W)`` from 0 (blue) to 1 (yellow)."""
    from matplotlib import colormaps

    colours = colormaps["viridis"](heat)[..., :3] * 255
    grey = picture.mean(axis=2, keepdims=True)
    shown: Picture = (0.35 * grey + 0.65 * colours).round().astype(np.uint8)
    return shown


def write_grid(
    rows: Sequence[Sequence[Picture]], columns: Sequence[str], labels: Sequence[str], path: Path | str
) -> None:
    """Draw pictures in rows and columns as PNG.

    Args:
        rows: pictures ``(H, W, 3)``, as many in each row as there are columns.
        columns: words above them; may have line breaks.
        labels: words left of each row.
        path: to write.

    Raises:
        ValueError: if a row has another number of pictures.
    """
    from matplotlib.figure import Figure

    wrong = [len(row) for row in rows if len(row) != len(columns)]
    if wrong:
        raise ValueError(f"a row has {wrong[0]} pictures, there are {len(columns)} columns")
    height = WIDTH_INCHES / (len(columns) + 0.45) * len(rows) + 0.28
    figure = Figure(figsize=(WIDTH_INCHES, height), dpi=300)
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for line, row in enumerate(rows):
        for place, picture in enumerate(row):
            cell = axes[line][place]
            cell.imshow(np.asarray(Image.fromarray(picture).resize((CELL_PX, CELL_PX), Image.Resampling.BILINEAR)))
            cell.set_xticks([])
            cell.set_yticks([])
            cell.spines[:].set_visible(False)
            if line == 0:
                cell.set_title(columns[place], fontsize=6, pad=2)
        axes[line][0].set_ylabel(labels[line], fontsize=6, labelpad=2)
    figure.subplots_adjust(
        left=0.09, right=0.995, top=1 - 0.26 / height, bottom=0.02 / height, wspace=0.04, hspace=0.04
    )
    figure.savefig(path, format="png")
