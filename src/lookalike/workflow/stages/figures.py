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
    """What the page counts, as a list."""
    looks = ", ".join(f"{rate:.0%} after {look}" for look, rate in zip(LOOKS, RATES, strict=True))
    said = [
        "**Numbers**: what a paper says of trainings is a number per seed, claimed to be above zero.",
        f"**Verdicts**: by its interval *yes* above zero, *no* below, *small* within {MARGIN:g} points of zero (unless "
        "the figure names another margin or none), else *undecided*. A single seed decides nothing.",
        "**Intervals** hold for other seeds on these test classes; the target `claims` compares over classes, too.",
        f"**Errors**: of the verdicts of all figures one in twenty at most is expected to be false ({looks} seeds).",
        "**Trends**: the rise of a straight line over the steps.",
        "**Several cases**: where all are to be so, the number is that of the worst; where the best is to lie among "
        "some, of the best of these; where most are to be so, of as many as three in four, and of their mean. The "
        "interval's ends come from all cases, each at the error that the others leave to it.",
        "**Without seeds**: follows from a formula, whatever is trained, or was measured once, such as times.",
        "**Measured**: a number about which a paper says nothing.",
        "**Not measured**: a paper's words for which nothing was run here.",
    ]
    return "\n".join(["How often a paper's words on a figure hold here.", "", *(f"- {each}" for each in said)])


def _counts(found: Sequence[Finding]) -> str:
    """Count of each verdict, as cells."""
    counts = counted((str(finding.verdict) for finding in found), OF_FIGURES)
    return " | ".join(str(count or "") for count in counts.values())
