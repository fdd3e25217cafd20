"""Verdict on a claim from all its rows together, and the claims decided at a look among many.

All that a verdict needs of a number is four errors: of the widest intervals that still lie above zero, below it, above
minus the margin and below the margin. Where interval and claim agree so far, the error of the interval is that of the
verdict; so the verdict on several rows follows from theirs.

*Rows*: a claim says that ``every`` row is higher, that ``some`` row is, or that the ``mean`` of rows is. Every row is
higher if the least certain one is, at the claim's own error (Berger 1982). Some row is if the most certain one is, at
the error divided by the number of rows; which ones, closed testing tells (Holm 1979). The mean is that of the rows'
differences, seed by seed and class by class, so that what rows share, a baseline or test classes, counts in its error
as it must.

*Claims*: the false-discovery rate is kept between claims, as `lookalike.workflow.report.statistics.decisions` says: if
R of m claims are decided, each is at an error of ``rate * R / m``. At any truth a claim's verdict is false with a
probability of at most its error: of all ends of intervals that may be on the wrong side, two can be at a time, each at
half. Each row has one metric. What is judged by another one is another family, with a rate of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from lookalike.workflow.report.statistics.crossed import Crossed, Estimate, Variances, variances
from lookalike.workflow.report.statistics.decisions import margin_of
from lookalike.workflow.report.statistics.moderated import Prior, estimated_prior, moderated
from lookalike.workflow.report.statistics.verdict import Verdict

PRIMARY, SECOND = "R@1", "RP"  # the second has verdicts beside, and decides none of the first
LOOKS = (3, 6, 10)  # trainings of a row at which one may look
LOOKS_AT_HALVES = (4, 6, 10)  # where seeds train on either half of the classes, two on each at least
RATES = (0.02, 0.015, 0.015)  # of false verdicts among the decided claims, at each look: 5 % together
NOT_LEARNED = 0.05  # error of a one-sided test


class Quantifier(StrEnum):
    """Of how many of its rows a claim speaks."""

    EVERY = "every"
    MEAN = "mean"
    SOME = "some"


class Direction(StrEnum):
    """Of the changed recipe; ``different`` is fulfilled by either sign."""

    HIGHER = "higher"
    LOWER = "lower"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Errors:
    """The error of the widest interval, 0 to 1, that still says so.

    Attributes:
        higher: that a difference is above zero.
        lower: that it is below zero.
        not_lower: that it is above minus the margin.
        not_higher: that it is below the margin.
    """

    higher: float
    lower: float
    not_lower: float
    not_higher: float

    def toward(self, direction: Direction) -> Errors:
        """The same errors, turned so that the claimed direction is higher."""
        if direction == Direction.LOWER:
            return Errors(self.lower, self.higher, self.not_higher, self.not_lower)
        if direction == Direction.DIFFERENT:
            small = max(self.not_lower, self.not_higher)
            return Errors(min(self.higher, self.lower), 1.0, small, small)
        return self

    @property
    def least(self) -> float:
        """At which something is said."""
        return min(self.higher, self.lower, max(self.not_lower, self.not_higher))

    def verdict(self, error: float) -> Verdict:
        """Verdict at an error, on a claim that something is higher."""
        if self.higher <= error:
            return Verdict.HOLDS
        if self.lower <= error:
            return Verdict.FAILS
        return Verdict.SMALL if max(self.not_lower, self.not_higher) <= error else Verdict.UNDECIDED


SILENT = Errors(1.0, 1.0, 1.0, 1.0)


def errors_of(estimate: Estimate, margin: float) -> Errors:
    """Errors of a difference.

    Args:
        estimate: its mean and variance.
        margin: below which it is small, in its unit.
    """
    mean = estimate.mean
    return Errors(*map(float, estimate.errors([mean, -mean, margin + mean, margin - mean])))


def of_every(errors: Sequence[Errors]) -> Errors:
    """Errors of the lowest row: it is above a bound if every row is, and below one if some row is."""
    return Errors(
        max(each.higher for each in errors),
        _some([each.lower for each in errors]),
        max(each.not_lower for each in errors),
        _some([each.not_higher for each in errors]),
    )


def of_some(errors: Sequence[Errors]) -> Errors:
    """Errors of the highest row: it is above a bound if some row is, and below one if every row is."""
    turned = of_every([each.toward(Direction.LOWER) for each in errors])
    return turned.toward(Direction.LOWER)


def closed(errors: Sequence[float]) -> list[float]:
    """Errors at which single rows are told from the others' by closed testing: those of Holm."""
    order = sorted(range(len(errors)), key=errors.__getitem__)
    found, reached = [1.0] * len(errors), 0.0
    for done, place in enumerate(order):
        reached = max(reached, min(1.0, (len(errors) - done) * errors[place]))
        found[place] = reached
    return found


def _some(errors: Sequence[float]) -> float:
    """Error at which one of several is told, whichever."""
    return min(1.0, len(errors) * min(errors))


def learned(estimate: Estimate) -> bool:
    """Whether a model is above its untrained start, by a one-sided test.

    Args:
        estimate: R@1 of the plain twin after training minus that before, over seeds and classes; how much seeds vary is
            told by all twins of the data set and network.
    """
    return bool(estimate.interval(2 * NOT_LEARNED)[0] > 0)


@dataclass(frozen=True, eq=False)
class Row:
    """A pair of recipes on a data set, by one metric.

    Attributes:
        changed: recipe under test.
        baseline: its plain twin.
        family: data set and network, over which the variance over seeds is pooled by metric.
        metric: of the differences.
        differences: changed minus baseline, in percent points.
        tested: whether its plain twin has learned; a row that is not tested says nothing and still counts.
    """

    changed: str
    baseline: str
    family: str
    metric: str
    differences: Crossed
    tested: bool = True

    @property
    def pool(self) -> tuple[str, str]:
        """Whose rows tell of this one's seeds, too."""
        return self.family, self.metric


@dataclass(frozen=True, eq=False)
class Claim:
    """A paper's statement on rows, at least one.

    Attributes:
        rows: of which it speaks.
        quantifier: of how many.
        direction: what it says of them.
        silent: how many rows it has besides, of which nothing was measured: they say nothing and still count.
    """

    rows: Sequence[Row]
    quantifier: Quantifier = Quantifier.EVERY
    direction: Direction = Direction.HIGHER
    silent: int = 0

    @property
    def seeds(self) -> int:
        """Number of seeds that each row has."""
        return min(row.differences.seeds for row in self.rows)

    @property
    def is_tested(self) -> bool:
        """Whether any row is."""
        return any(row.tested for row in self.rows)


@dataclass(frozen=True)
class Judged:
    """Verdict on a claim and on its rows, at the look that decided it or at the last one.

    Attributes:
        verdict: on the claim.
        error: of the intervals that it follows from.
        seeds: of each row.
        rows: verdicts on single rows, at that error; of a claim of ``some`` those of closed testing.
        estimates: of each row, toward no direction.
        mean: of a claim of ``mean`` the average of its tested rows.
    """

    verdict: Verdict
    error: float
    seeds: int
    rows: tuple[Verdict, ...]
    estimates: tuple[Estimate, ...]
    mean: Estimate | None


def judge(
    claims: Sequence[Claim], looks: Sequence[int] = LOOKS, rates: Sequence[float] = RATES, silent: int = 0
) -> list[Judged]:
    """Verdicts on all claims after all looks that their seeds allow; a verdict that a look decides stays.

    The looks before a claim's last take as many seeds as ``looks`` says, the last one all there are: between two looks
    verdicts are for the time being. Claims that are not tested count among all.

    Args:
        claims: one family, whose false verdicts the rates are of.
        looks: numbers of seeds at which one may look.
        rates: of false verdicts among the decided claims, at each look.
        silent: how many claims the family has besides, none of whose rows was measured; they count among all.

    Raises:
        ValueError: as `lookalike.workflow.report.statistics.crossed.variances`.
    """
    reached: dict[int, Judged] = {}
    last = [max([look for look, seeds in enumerate(looks) if claim.seeds >= seeds], default=0) for claim in claims]
    for look in range(max(last, default=0) + 1):
        seen = {
            place: _Seen(claim, looks[look] if look < last[place] else claim.seeds)
            for place, claim in enumerate(claims)
            if last[place] >= look
        }
        priors = _priors(list(seen.values()))
        decided = {place for place, each in reached.items() if each.verdict != Verdict.UNDECIDED}
        asked = {place: _Asked(each, priors) for place, each in seen.items() if place not in decided}
        error = _error([each.errors.least for each in asked.values()], len(claims) + silent, len(decided), rates[look])
        reached |= {place: each.judged(error) for place, each in asked.items()}
    return [reached[place] for place in range(len(claims))]


def _error(least: Sequence[float], count: int, decided: int, rate: float) -> float:
    """Error of the intervals of a look: the largest that its step-up rule allows.

    Args:
        least: of each claim that is asked the error at which it is decided.
        count: of all claims.
        decided: of those that earlier looks have decided.
        rate: of the look.
    """
    for number in range(len(least) + decided, decided, -1):
        error = rate * number / count
        if sum(each <= error for each in least) + decided >= number:
            return error
    return rate * max(decided, 1) / max(count, 1)  # at which none is decided


class _Seen:
    """Variances of a claim's rows over a number of seeds."""

    def __init__(self, claim: Claim, seeds: int) -> None:
        self.claim, self.seeds = claim, seeds
        told = [row.differences for row in claim.rows]
        self.rows = [variances(each.differences[:seeds], each.weights) for each in told]


Priors = Mapping[tuple[str, str], Prior | None]


def _priors(seen: Sequence[_Seen]) -> Priors:
    """Prior by pool, from all its comparisons; one that several claims name counts once."""
    found: dict[tuple[str, str], dict[tuple[str, str], Variances]] = {}
    for each in seen:
        for row, told in zip(each.claim.rows, each.rows, strict=True):
            found.setdefault(row.pool, {})[row.changed, row.baseline] = told
    return {pool: estimated_prior(list(own.values()), list(own)) for pool, own in found.items()}


class _Asked:
    """Errors of a claim at a look."""

    def __init__(self, seen: _Seen, priors: Priors) -> None:
        self._seen, claim = seen, seen.claim
        pairs = list(zip(claim.rows, seen.rows, strict=True))
        self._estimates = tuple(moderated(told, priors[row.pool]) for row, told in pairs)
        self._rows = [
            errors_of(estimate, margin_of(row.metric)).toward(claim.direction) if row.tested else SILENT
            for row, estimate in zip(claim.rows, self._estimates, strict=True)
        ]
        self._mean = None
        if not claim.is_tested:
            self.errors = SILENT
        elif claim.quantifier == Quantifier.MEAN:
            self._mean = _mean(claim, seen.seeds, priors)
            self.errors = errors_of(self._mean, margin_of(claim.rows[0].metric)).toward(claim.direction)
        else:
            self.errors = (of_every if claim.quantifier == Quantifier.EVERY else of_some)(
                [*self._rows, *[SILENT] * claim.silent]
            )

    def judged(self, error: float) -> Judged:
        """Verdicts on the claim and on its rows at an error."""
        claim, rows = self._seen.claim, self._rows
        if claim.quantifier == Quantifier.SOME:
            told = closed([each.higher for each in rows] + [SILENT.higher] * claim.silent)[: len(rows)]
            rows = [replace(each, higher=higher) for each, higher in zip(rows, told, strict=True)]
        return Judged(
            self.errors.verdict(error) if claim.is_tested else Verdict.NOT_TESTED,
            error,
            self._seen.seeds,
            tuple(
                each.verdict(error) if row.tested else Verdict.NOT_TESTED
                for row, each in zip(claim.rows, rows, strict=True)
            ),
            self._estimates,
            self._mean,
        )


def _mean(claim: Claim, seeds: int, priors: Priors) -> Estimate:
    """The average of the tested rows: within a family seed by seed and class by class, over families by that.

    Raises:
        ValueError: for rows of a family that were not tested on the same classes.
    """
    tested = [row for row in claim.rows if row.tested]
    shares = []
    for pool in dict.fromkeys(row.pool for row in tested):
        own = [row.differences for row in tested if row.pool == pool]
        shares.append((len(own) / len(tested), moderated(_averaged(own, seeds), priors[pool])))
    return _average(shares)


def _averaged(rows: Sequence[Crossed], seeds: int) -> Variances:
    first = rows[0]
    for each in rows:
        if not np.array_equal(_weights(each), _weights(first)):
            raise ValueError("rows of a data set whose mean is claimed were not tested on the same classes")
    return variances(np.mean([each.differences[:seeds] for each in rows], axis=0), first.weights)


def _weights(row: Crossed) -> NDArray[np.float64]:
    return np.ones(row.differences.shape[1]) if row.weights is None else row.weights


def _average(shares: Sequence[tuple[float, Estimate]]) -> Estimate:
    """Of estimates that do not depend on each other; nothing is known of its error where it is not of one of them."""
    known = all(estimate.parts for _, estimate in shares)
    parts = [(share**2 * variance, freedom) for share, each in shares for variance, freedom in each.parts]
    return Estimate(
        sum(share * each.mean for share, each in shares),
        tuple(parts) if known else (),
        min(each.seeds for _, each in shares),
        sum(each.classes for _, each in shares),
    )
