"""Compute and draw one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from lookalike.figures import FIGURES
from lookalike.figures.parts.caption import origin, told
from lookalike.figures.parts.form import Run
from lookalike.files import replacing, write_json


def figures(
    name: str,
    entry: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    files: Sequence[str],
    output: str,
) -> None:
    """Write the data of a figure, the picture drawn from them, and what was checked; all figures are decided together.

    Args:
        name: a key of ``lookalike.figures.FIGURES``.
        entry: the figure's entry of ``params/figures.yaml``.
        runs: rows of runs, from ``lookalike.plan.figures.figure_runs``.
        scale: what the scale calls itself.
        files: one of each run, in the order of the runs.
        output: path without extension; ``.csv`` holds the data, ``.svg`` and ``.png`` the picture, ``.json`` the
            title, the checks with a number per seed, and what its caption begins with.

    Raises:
        ValueError: from the figure's own function, for options or files that do not fit.
    """
    read = [Run(**run, path=path) for run, path in zip(runs, files, strict=True)]
    with replacing(f"{output}.csv") as path:
        FIGURES[name].data(read, entry.get("options", {})).to_csv(path, index=False, float_format="%.6g")
    draw(name, entry, read, scale=scale, output=output)


def draw(name: str, entry: Mapping[str, Any], read: Sequence[Run], *, scale: str, output: str) -> None:
    """The picture of a figure and what was checked, from its written data; so whoever has these can draw the same.

    Args:
        name: as for `figures`, like the rest.
        entry: of the figure.
        read: the runs that its data are of.
        scale: what the scale calls itself.
        output: path without extension, of which ``.csv`` is there.
    """
    from lookalike.figures.parts.style import (  # matplotlib, which only a drawing job pays for
        KINDS,
        entitle,
        save,
        style,
    )

    figure, frame = FIGURES[name], pd.read_csv(f"{output}.csv")
    title = f"{entry['place']}: {entry['title']}"
    with style():
        picture = figure.draw(frame)
        entitle(picture, title, origin(read, scale, example=figure.example).replace("`", ""))
        for kind in KINDS:
            with replacing(f"{output}.{kind}") as path:
                save(picture, path, kind)
    checks = [asdict(check) for check in figure.checks(frame)]
    write_json(f"{output}.json", {"title": title, "checks": checks, "told": told(name, entry, read, scale)})
