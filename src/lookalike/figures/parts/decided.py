"""Which of the papers' words on all figures hold, decided together with one stated rate of false verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from lookalike.figures.parts.form import Check
from lookalike.statistics.cases import Cases
from lookalike.statistics.decisions import MARGIN, Decided, decide
from lookalike.statistics.verdict import Verdict

OF_A_MEAN = {Verdict.HIGHER: Verdict.YES, Verdict.LOWER: Verdict.NO, Verdict.EQUAL: Verdict.NO}


@dataclass(frozen=True)
class Finding:
    """What became of a check.

    Attributes:
        verdict: one of `lookalike.statistics.verdict.OF_FIGURES`.
        words: what the verdict rests on, number and interval; empty where there is none.
    """

    verdict: Verdict
    words: str


def findings(checks: Sequence[Check]) -> list[Finding]:
    """Verdicts on all checks; those over seeds share the rate of false ones, see `lookalike.statistics.decisions`.

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
