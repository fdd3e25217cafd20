"""Compute and draw one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from lookalike.figures.caption import caption
from lookalike.figures.form import Run
from lookalike.figures.kinds import FIGURES
from lookalike.files import replacing, write_text

KINDS = ("svg", "png")


def figures(
    name: str,
    entry: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    files: Sequence[str],
    output: str,
) -> None:
    """Write the data of a figure, the picture drawn from them, and its caption.

    Args:
        name: a key of ``lookalike.figures.kinds.FIGURES``.
        entry: of ``params/figures.yaml``.
        runs: as ``lookalike.figures.entries.figure_runs`` gives them.
        scale: what the scale calls itself.
        files: one of each run, in the order of the runs.
        output: path without extension; ``.csv`` holds the data, ``.svg`` and ``.png`` the picture, ``.md`` the caption.

    Raises:
        ValueError: from the figure's own function, for options or files that do not fit.
    """
    from lookalike.figures.style import save, style  # matplotlib, which only a drawing job pays for

    figure = FIGURES[name]
    read = [Run(**run, path=path) for run, path in zip(runs, files, strict=True)]
    with replacing(f"{output}.csv") as path:
        figure.data(read, entry.get("options", {})).to_csv(path, index=False, float_format="%.6g")
    frame = pd.read_csv(f"{output}.csv")  # so that whoever has the file can draw and check the same
    with style():
        picture = figure.draw(frame)
        for kind in KINDS:
            with replacing(f"{output}.{kind}") as path:
                save(picture, path, kind)
    write_text(f"{output}.md", caption(name, entry, read, figure.checks(frame), scale))
