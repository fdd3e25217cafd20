"""The words beside a figure: its content, its runs, and the verdicts on the papers' words about all figures.

Verdicts of all figures are decided together, with one stated rate of false ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from lookalike.workflow.report.figures.parts.form import Check, Run
from lookalike.workflow.report.statistics.cases import Cases
from lookalike.workflow.report.statistics.decisions import MARGIN, Decided, decide
from lookalike.workflow.report.statistics.verdict import Verdict
from lookalike.workflow.settings.pages import Figure

OF_A_MEAN = {Verdict.HIGHER: Verdict.YES, Verdict.LOWER: Verdict.NO, Verdict.EQUAL: Verdict.NO}


@dataclass(frozen=True)
class Finding:
    """Verdict on a check, with the number and the interval behind it.

    Attributes:
        verdict: one of `lookalike.workflow.report.statistics.verdict.OF_FIGURES`.
        words: what the verdict rests on, number and interval; empty where there is none.
    """

    verdict: Verdict
    words: str


def findings(checks: Sequence[Check]) -> list[Finding]:
    """Verdicts on all checks; those over seeds share the rate of false ones, see
    `lookalike.workflow.report.statistics.decisions`.

    Args:
        checks: of all figures of a scale.
    """
    asked = [(check, Cases(np.array(check.cases), check.needed)) for check in checks if check.cases]
    reached = decide([cases for _, cases in asked], [check.margin for check, _ in asked])
    of_seeds = iter(_of_seeds(*each, found) for each, found in zip(asked, reached, strict=True))
    return [next(of_seeds) if check.cases else Finding(_fixed(check), "") for check in checks]


def _fixed(check: Check) -> Verdict:
    if not check.measured:
        return Verdict.NOT_MEASURED
    if check.holds is None:
        return Verdict.UNDECIDED if check.claimed else Verdict.MEASURED
    return Verdict.FIXED_YES if check.holds else Verdict.FIXED_NO


def _of_seeds(check: Check, cases: Cases, reached: Decided) -> Finding:
    decision, estimate = reached.decision, reached.estimate
    verdict = OF_A_MEAN.get(decision.verdict, decision.verdict)
    if isnan(decision.low):
        return Finding(verdict, f"{number(estimate.mean)} {check.unit}, one seed")
    ends = f"{number(decision.low)} to {number(decision.high)}"
    seeds = f"{estimate.seeds} seeds"
    if estimate.seeds < cases.seeds:
        seeds = f"the first {estimate.seeds} of {cases.seeds} seeds; over all {number(cases.mean)}"
    level = f"{100 * decision.level:.1f} % interval {ends}, {seeds}{_margin(check)}"
    return Finding(verdict, f"{number(estimate.mean)} {check.unit} ({level})")


def _margin(check: Check) -> str:
    """The margin that a check is decided by, where it is not the usual one."""
    if check.margin == MARGIN:
        return ""
    return f", margin {check.margin:g}" if check.margin else ", no margin"


def number(value: float) -> str:
    """With its sign: a decimal from 1 on, two digits below."""
    return f"{value:+.1f}" if abs(value) >= 1 else f"{value:+.2g}"


def told(name: str, entry: Figure, runs: Sequence[Run], scale: str) -> str:
    """Markdown on a figure before anything is decided: title, picture, data and the paper's words.

    Args:
        name: of the figure, and of its PNG beside the page.
        entry: of ``params/figures.yaml``.
        runs: that the figure reads; none for one that computes everything by itself.
        scale: what the scale calls itself.
    """
    parts = [
        f"# {entry.place}: {entry.title}",
        f"![{entry.title}]({name}.png)",
        entry.shows,
        f"**Data.** {_sources(entry, runs, scale)}",
        *([f"**Chosen here**, as the paper does not say: {entry.chosen}"] if entry.chosen else []),
        f"**The paper says:** {entry.says}",
    ]
    return "\n\n".join(parts)


def caption(before: str, checks: Sequence[Check], found: Sequence[Finding]) -> str:
    """A page of Markdown.

    Args:
        before: as `told` of the figure.
        checks: of its data.
        found: what became of each of them.
    """
    lines = [
        f"- **{finding.verdict}** – {check.says}{f': {finding.words}' if finding.words else ''}"
        for check, finding in zip(checks, found, strict=True)
    ]
    return f"{before}\n\n**Here:**\n\n" + "\n".join(lines) + "\n"


def origin(runs: Sequence[Run], scale: str, *, example: bool = False) -> str:
    """Data sets, scale and seeds behind a figure, in a line of text.

    Args:
        runs: that the figure reads.
        scale: what the scale calls itself.
        example: whether its pictures are of the first seed alone.
    """
    if not runs:
        return "computed for this figure, the same at every scale"
    sets = [
        run.dataset if run.dataset == run.published else f"{run.dataset} (stands for {run.published})" for run in runs
    ]
    seeds = sorted({run.seed for run in runs})
    named = _seeds(seeds)
    if example and len(seeds) > 1:
        named = f"pictures of seed {seeds[0]}, numbers of {named}"
    return f"{', '.join(dict.fromkeys(sets))}; {scale}; {named}"


def _seeds(seeds: Sequence[int]) -> str:
    """``one seed: 3``, ``seeds 0 to 9``, or all of them where some between are missing."""
    first, last = seeds[0], seeds[-1]
    if first == last:
        return f"one seed: {first}"
    if list(seeds) == list(range(first, last + 1)):
        return f"seeds {first} to {last}"
    return f"seeds {', '.join(map(str, seeds))}"


def _sources(entry: Figure, runs: Sequence[Run], scale: str) -> str:
    if not runs:
        return "Computed for this figure; the same at every scale."
    named = [f"the sweep `{each.sweep}`" for each in entry.runs if each.sweep]
    named += [f"`{each.recipe}`" for each in entry.runs if each.recipe]
    sources = ", ".join(dict.fromkeys(named))
    reads = " and ".join(dict.fromkeys(run.reads for run in runs))
    return f"{origin(runs, scale)}; {reads} of {sources}."
