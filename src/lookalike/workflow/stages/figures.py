"""Compute and draw figures, decide the papers' words on all of them, and put them on one page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.base.files import read_json, replacing, write_json, write_text
from lookalike.workflow.report.figures import FIGURES
from lookalike.workflow.report.figures.parts.caption import Finding, caption, findings, origin, told
from lookalike.workflow.report.figures.parts.form import Check, Run
from lookalike.workflow.report.statistics.decisions import LOOKS, MARGIN, RATES
from lookalike.workflow.report.statistics.verdict import OF_FIGURES, counted
from lookalike.workflow.settings.model import typed
from lookalike.workflow.settings.pages import PlannedFigure

HEADING = re.compile(r"^# ")
PICTURE = re.compile(r"\]\((\w+\.png)\)")


def figures(
    figure: str,
    entry: PlannedFigure,
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    files: Sequence[str],
    output: str,
) -> None:
    """Write the data of a figure, the picture drawn from them, and its checks; all figures are decided together.

    Args:
        figure: a key of ``lookalike.workflow.report.figures.FIGURES``.
        entry: the figure's entry of ``params/figures.yaml``.
        runs: rows of runs, from ``lookalike.workflow.plan.figures.figure_runs``.
        files: one of each run, in the order of the runs.
        output: CSV to write, with the data; beside it ``.svg`` and ``.png`` are the picture, ``.json`` holds the title,
            the checks with a number per seed, and what its caption begins with.

    Raises:
        ValueError: from the figure's own function, for options or files that do not fit.
    """
    read = [Run(**run, path=path) for run, path in zip(runs, files, strict=True)]
    compute = FIGURES[figure].data
    options = typed(compute, {"options": entry.options})["options"]
    with replacing(output) as path:
        compute(read, options).to_csv(path, index=False, float_format="%.6g")
    draw(figure, entry, read, scale=scale, output=output.removesuffix(".csv"))


def draw(name: str, entry: PlannedFigure, read: Sequence[Run], *, scale: str, output: str) -> None:
    """Write the picture and the checks of a figure from its written data; so whoever has these can draw the same.

    Args:
        name: a figure's, and the rest as for `figures`.
        entry: of the figure.
        read: the runs that its data are of.
        output: path without extension, of which ``.csv`` is there.
    """
    from lookalike.workflow.report.figures.parts.style import (  # matplotlib, which only a drawing job pays for
        KINDS,
        entitle,
        save,
        style,
    )

    figure, frame = FIGURES[name], pd.read_csv(f"{output}.csv")
    title = f"{entry.place}: {entry.title}"
    with style():
        picture = figure.draw(frame)
        entitle(picture, title, origin(read, scale, example=figure.example).replace("`", ""))
        for kind in KINDS:
            with replacing(f"{output}.{kind}") as path:
                save(picture, path, kind)
    checks = [asdict(check) for check in figure.checks(frame)]
    write_json(f"{output}.json", {"title": title, "checks": checks, "told": told(name, entry, read, scale)})


def figures_page(figures: Mapping[str, str], *, scale: str, output: str) -> None:
    """Write a caption beside each figure, and the page: verdicts by count, then all figures with their captions.

    Args:
        figures: path of each figure without extension, by its name, in the order of the page.
        output: Markdown to write, in the folder above.
    """
    read = {name: read_json(f"{path}.json") for name, path in figures.items()}
    checks = {name: [Check(**check) for check in figure["checks"]] for name, figure in read.items()}
    reached = iter(findings([check for own in checks.values() for check in own]))
    found = {name: [next(reached) for _ in own] for name, own in checks.items()}
    table = [
        f"| figure | {' | '.join(OF_FIGURES)} |",
        f"|:--{'|--:' * len(OF_FIGURES)}|",
        *(f"| [{read[name]['title']}](#{name}) | {_counts(own)} |" for name, own in found.items()),
        f"| all | {_counts([each for own in found.values() for each in own])} |",
    ]
    lines = [f"# Figures: {scale}", _notes(), "\n".join(table)]
    for name, path in figures.items():
        page = caption(read[name]["told"], checks[name], found[name])
        write_text(f"{path}.md", page)
        below = HEADING.sub(f'## <a id="{name}"></a>', page, count=1)
        lines.append(PICTURE.sub(rf"]({Path(path).parent.name}/\1)", below).strip())
    write_text(output, "\n\n".join(lines) + "\n")


def _notes() -> str:
    looks = ", ".join(f"{rate:.0%} after {look}" for look, rate in zip(LOOKS, RATES, strict=True))
    return (
        "How often what a paper says of a figure holds here. What differs from training to training is a number per "
        "seed, claimed to be above zero, and its interval decides: *yes* above zero, *no* below, *small* within "
        f"{MARGIN:g} points of zero on both sides (where another margin holds, or none, the figure says so), else "
        "*undecided*, as is every single seed. A trend is the rise of a straight line over its steps; where it is said "
        "of several cases, that all are so, that the best lies among some, or that most are (three in four, and their "
        "mean), the number is that of the worst case, the best among these, or what so many reach, and the ends of its "
        "interval come from all of them, each at the error that the others leave to it. Intervals hold for other "
        "seeds, on these test classes; the target `claims` compares over classes, too. Of the verdicts of all figures "
        "at most one in twenty is false in "
        f"expectation ({looks} seeds). *Without seeds* is what follows from a formula, whatever is trained, or was "
        "measured once, such as times; *measured* are numbers about which a paper says nothing; *not measured* is what "
        "a paper says and nothing here was run for."
    )


def _counts(found: Sequence[Finding]) -> str:
    """Count of each verdict, as cells."""
    counts = counted((str(finding.verdict) for finding in found), OF_FIGURES)
    return " | ".join(str(count or "") for count in counts.values())
