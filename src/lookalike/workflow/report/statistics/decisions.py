"""Decisions on many differences, at three looks, with one stated rate of false ones.

A difference is decided by its interval alone: *higher* or *lower* where that leaves zero out, *small* where it lies
within the margin on both sides, else *undecided*. With many comparisons some intervals miss by chance, and those that
decide are the likeliest to: so the level of the intervals follows from how many are decided. If R of m are, each misses
with a probability of ``rate * R / m`` (the largest R for which that is so), and the expected share of misses among the
decided is at most ``rate``; so is that of false verdicts, as a verdict is false only if its interval misses.

Source: Benjamini and Yekutieli 2005, "False Discovery Rate-Adjusted Multiple Confidence Intervals for Selected
Parameters", JASA 100; the step-up rule is that of Benjamini and Hochberg 1995. Looks add up: what is decided at a look
stays, and a later look asks only what is open and has its seeds. It counts as decided what is so for good, so that no
look counts more than are decided in the end, and the shares of false verdicts of all looks together are at most the sum
of the looks' rates. That is proved for comparisons that are independent, or move together; for the dependence of
comparisons that share seeds and classes it is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookalike.metrics.names import ON_TRAINING
from lookalike.workflow.report.statistics.cases import Cases
from lookalike.workflow.report.statistics.crossed import Crossed, Estimate
from lookalike.workflow.report.statistics.verdict import Verdict

LOOKS = (3, 10, 20)  # seeds at which one may look
RATES = (0.01, 0.02, 0.02)  # of false verdicts among those decided, at each look: 5 % together
MARGINS = {"RP": 1.0, "MAP@R": 1.0}  # in percent points; narrower where metrics are smaller
MARGIN = 2.0  # of all others


@dataclass(frozen=True)
class Decision:
    """A verdict with the interval that it follows from.

    Attributes:
        verdict: that of a difference.
        low: lower end of the interval.
        high: upper end.
        level: of the interval, such as 0.99.
    """

    verdict: Verdict
    low: float
    high: float
    level: float


def margin_of(metric: str) -> float:
    """Difference in percent points below which a metric's difference is called small."""
    return MARGINS.get(metric.removeprefix(ON_TRAINING), MARGIN)


def look_at(seeds: int) -> int:
    """Number of the last look that so many seeds allow; 0, as the first, also for fewer."""
    return max([look for look, needed in enumerate(LOOKS) if seeds >= needed], default=0)


@dataclass(frozen=True)
class Decided:
    """Decision on a comparison, of the look that made it or of the last one, and the estimate behind it."""

    decision: Decision
    estimate: Estimate | Cases


def decide(comparisons: Sequence[Crossed | Cases], margins: Sequence[float]) -> list[Decided]:
    """Verdicts on all comparisons after all looks that their seeds allow; a verdict that a look decides stays.

    The looks before a comparison's last take as many seeds as `LOOKS` says, the last one all there are: between two
    looks verdicts are for the time being. A comparison without seeds for a look keeps the verdict of its last one.

    Args:
        comparisons: one family, whose false verdicts the stated rate is of.
        margins: of each, in the unit of its differences, below which they are small; 0 where none are.

    Raises:
        ValueError: as their estimates, and if the numbers of comparisons and margins differ.
    """
    if len(comparisons) != len(margins):
        raise ValueError(f"{len(comparisons)} comparisons and {len(margins)} margins do not go together")
    reached: dict[int, Decided] = {}
    last = [look_at(each.seeds) for each in comparisons]
    for look in range(max(last, default=0) + 1):
        decided = {place for place, each in reached.items() if each.decision.verdict != Verdict.UNDECIDED}
        asked = [place for place, of_this in enumerate(last) if of_this >= look and place not in decided]
        estimates = [comparisons[place].estimate(LOOKS[look] if look < last[place] else None) for place in asked]
        found = decisions(
            estimates,
            [margins[place] for place in asked],
            RATES[look],
            others=len(comparisons) - len(asked),
            decided=len(decided),
        )
        for place, decision, estimate in zip(asked, found, estimates, strict=True):
            reached[place] = Decided(decision, estimate)
    return [reached[place] for place in range(len(comparisons))]


def decisions(
    estimates: Sequence[Estimate | Cases], margins: Sequence[float], rate: float, *, others: int = 0, decided: int = 0
) -> list[Decision]:
    """Verdicts of one look.

    Args:
        estimates: of the comparisons that it asks.
        margins: of each, in the unit of the differences.
        rate: of false verdicts among those decided.
        others: comparisons that it does not ask: an earlier look has decided them, or they have no seeds for this one.
        decided: how many of these are decided, and count among those that are.

    Raises:
        ValueError: if the numbers of estimates and margins differ, more others are decided than there are, or the rate
            is not between 0 and 1.
    """
    if len(estimates) != len(margins) or not 0 < rate < 1 or decided > others:
        raise ValueError(
            f"{len(estimates)} estimates, {len(margins)} margins, rate={rate} and {decided} decided of {others} others "
            "do not go together"
        )
    count = len(estimates) + others

    def at(error: float) -> list[Decision]:
        return [_decision(each, margin, error) for each, margin in zip(estimates, margins, strict=True)]

    for reached in range(len(estimates) + decided, decided, -1):
        found = at(rate * reached / count)
        if sum(each.verdict != Verdict.UNDECIDED for each in found) + decided >= reached:
            return found
    return at(rate * max(decided, 1) / max(count, 1))  # at which none is decided


def _decision(estimate: Estimate | Cases, margin: float, error: float) -> Decision:
    low, high = estimate.interval(error)
    if low > 0:
        verdict = Verdict.HIGHER
    elif high < 0:
        verdict = Verdict.LOWER
    elif estimate.mean == low == high == 0:
        verdict = Verdict.EQUAL
    else:
        verdict = Verdict.SMALL if -margin < low and high < margin else Verdict.UNDECIDED
    return Decision(verdict, low, high, 1 - error)
