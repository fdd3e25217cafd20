"""Style of all figures: as wide as a column, no text below 7 points, series told apart without colour too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from numpy.typing import NDArray

from lookalike.base.checks import require_known, workflow_extra

with workflow_extra():
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.3  # inches, 84 mm
RESOLUTION = 300  # dots per inch of the PNG
COARSER = 180  # of one that is wider than a column: pictures in tiles, whose bytes grow with the dots
SHADES = 256  # of a PNG; with a palette it takes a third of the bytes
LINE = 0.13  # inches from one line of a title to the next
LETTERS = {"bold": 14.5, "normal": 17.0}  # of seven points in an inch, at least
RANGE = re.compile(r"(?<=\d) to (?=\d)")  # of numbers, which stay on one line


class Look(NamedTuple):
    """Colour, marker and line that tell one series from the others."""

    colour: str
    marker: str
    line: str


# The colours of Okabe and Ito, which colour-blind readers tell apart; yellow is left out, too pale for lines.
LOOKS = [
    Look("#0072B2", "o", "-"),  # blue
    Look("#E69F00", "s", "--"),  # orange
    Look("#009E73", "^", "-."),  # bluish green
    Look("#CC79A7", "D", ":"),  # reddish purple
    Look("#D55E00", "v", (0, (5, 1, 1, 1, 1, 1))),  # type: ignore[arg-type]  # vermilion
    Look("#56B4E9", "P", (0, (1, 1))),  # type: ignore[arg-type]  # sky blue
    Look("#000000", "X", (0, (6, 2))),  # type: ignore[arg-type]
]
KINDS = ("svg", "png")
REFERENCE = "#595959"  # lines that are no measurement: chance, theory, a published value

SETTINGS: Any = {  # of matplotlib
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that pictures are the same everywhere
    "font.size": 7,
    "axes.labelsize": 7,
    "axes.titlesize": 7,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "savefig.dpi": RESOLUTION,
    "svg.fonttype": "path",
    "svg.hashsalt": "lookalike",  # equal data give equal files
}


@contextmanager
def style() -> Iterator[None]:
    """Everything drawn and saved inside looks alike."""
    with mpl.rc_context(SETTINGS):
        yield


def panels(rows: int, columns: int, *, height: float, **options: Any) -> tuple[Figure, NDArray[Any]]:
    """An empty picture of column width.

    Args:
        rows: of panels.
        columns: of panels.
        height: of the whole picture in inches.
        options: as ``Figure.subplots`` takes them.

    Returns:
        The picture and its axes ``(rows, columns)``.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes: NDArray[Any] = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, axes


def legend_below(figure: Figure, axes: Axes, columns: int = 2) -> None:
    """One legend for all panels, below them."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, columnspacing=1.2)


def entitle(figure: Figure, title: str, origin: str) -> None:
    """Write title and origin above a picture, so that it speaks for itself; it grows by these lines.

    Args:
        figure: in constrained layout.
        title: in bold.
        origin: in grey.
    """
    width, height = figure.get_size_inches()
    parts = [(title, "bold", "black"), (origin, "normal", REFERENCE)]
    lines = [
        (line, weight, colour)
        for text, weight, colour in parts
        for line in wrap(RANGE.sub("\u00a0to\u00a0", text), int((width - 0.1) * LETTERS[weight]))
    ]
    taller = height + LINE * (len(lines) + 0.7)
    figure.set_size_inches(width, taller)
    figure.suptitle("\n".join([" "] * len(lines)), fontsize=7)  # keeps their place free; has but one weight and colour
    for number, (line, weight, colour) in enumerate(lines):
        at = 1 - LINE * (number + 0.4) / taller
        figure.text(0.05 / width, at, line, fontweight=weight, color=colour, fontsize=7, va="top")


def save(figure: Figure, path: Path, kind: str) -> None:
    """Write a picture without date and version, so that equal data give equal files.

    Args:
        figure: the picture.
        path: of the file, of any suffix.
        kind: ``svg`` or ``png``.

    Raises:
        ValueError: for another kind.
    """
    require_known(f"{path}, kind", kind, KINDS)
    if kind == "svg":
        figure.savefig(path, format=kind, metadata={"Date": None, "Creator": None})
        return
    from PIL import Image

    dots = RESOLUTION if figure.get_figwidth() <= WIDTH else COARSER
    with BytesIO() as drawn:
        figure.savefig(drawn, format=kind, dpi=dots)
        picture = Image.open(drawn).convert("RGB").quantize(SHADES, dither=Image.Dither.NONE)
    picture.save(path, format=kind, optimize=True, dpi=(dots, dots))
