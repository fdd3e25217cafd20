"""Which of the papers' words on all figures hold, decided together with one stated rate of false verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from lookalike.figures.parts.form import Check
from lookalike.statistics.decisions import MARGIN, Cases, Decided, decide
from lookalike.statistics.verdict import Verdict

OF_A_MEAN = {Verdict.HIGHER: Verdict.YES, Verdict.LOWER: Verdict.NO, Verdict.EQUAL: Verdict.NO}


@dataclass(frozen=True)
class Finding:
    """What became of a check.

    Attributes:
        verdict: one of `lookalike.statistics.verdict.OF_FIGURES`.
        words: what the verdict rests on: mean and interval of the statistic; empty where there is none.
    """

    verdict: Verdict
    words: str


def findings(checks: Sequence[Check]) -> list[Finding]:
    """Verdicts on all checks; those over seeds share the rate of false ones, see `lookalike.statistics.decisions`.

    Three seeds tell little of how much seeds vary, so the checks of one unit tell it together.

    Args:
        checks: of all figures of a scale.
    """
    random = [check for check in checks if len(check.statistic)]
    reached = iter(
        decide(
            [_column(check.statistic) for check in random],
            [None] * len(random),
            [check.margin for check in random],
            [check.unit for check in random],
            [_cases(check) if check.cases else None for check in random],
        )
    )
    return [_of_seeds(check, next(reached)) if len(check.statistic) else Finding(_fixed(check), "") for check in checks]


def _column(values: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)[:, None]


def _cases(check: Check) -> Cases:
    return [_column(case) for case in check.cases], check.needed or len(check.cases)


def _fixed(check: Check) -> Verdict:
    if check.holds is None:
        return Verdict.UNDECIDED if check.claimed else Verdict.MEASURED
    if check.computed:
        return Verdict.COMPUTED_YES if check.holds else Verdict.COMPUTED_NO
    return Verdict.YES if check.holds else Verdict.NO


def _of_seeds(check: Check, reached: Decided) -> Finding:
    decision, estimate = reached.decision, reached.estimate
    verdict = OF_A_MEAN.get(decision.verdict, decision.verdict)
    if isnan(decision.low):
        return Finding(verdict, f"{number(estimate.mean)} {check.unit}, one seed")
    ends = f"{number(decision.low)} to {number(decision.high)}"
    level = f"{100 * decision.level:.1f} % interval {ends}, {estimate.seeds} seeds{_margin(check)}"
    return Finding(verdict, f"{number(estimate.mean)} {check.unit} ({level})")


def _margin(check: Check) -> str:
    """The margin that a check is decided by, where it is not the usual one."""
    if check.margin == MARGIN:
        return ""
    return f", margin {check.margin:g}" if check.margin else ", no margin"


def number(value: float) -> str:
    """With its sign: a decimal from 1 on, two digits below."""
    return f"{value:+.1f}" if abs(value) >= 1 else f"{value:+.2g}"
