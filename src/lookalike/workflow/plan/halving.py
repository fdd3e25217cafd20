"""Successive halving: which rates are tried next for a kind of recipe, and which are chosen.

The first rung tries every pair of rates of trunk and head, each later one the best with more seeds. All
candidates of a rung have the same seeds, so that differences between them are paired. The last survivors are tried
with other rates of proxies or of AVSL's graph; a kind that has neither has the trunk's rate between two levels tried
instead, so that every kind gets the same number of trials. Where the best lies on an edge, the grid gets another level
of that rate. Of rates that do as well, a kind takes its plain twin's, else those within the grid.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import sqrt
from typing import NamedTuple

OWN = (0.333, 3.0)  # times the recipe's rate of proxies, which AVSL's graph has, too
BETWEEN = (0.667, 1.5)  # times the trunk's: between two levels, whichever of them survives
EXTENSIONS = 2  # levels beyond the grid, of each rate


class Candidate(NamedTuple):
    """Rates of a trial."""

    trunk: float
    head: float
    own: float = 1.0  # by which the rate of proxies is multiplied


class Design(NamedTuple):
    """Grid and rungs of a search of rates."""

    trunk: Sequence[float]  # levels, in ascending order
    head: Sequence[float]
    survivors: Sequence[int]  # how many candidates reach each rung after the first, of which there is one at least


class Asked(NamedTuple):
    """A candidate at a rung, to be trained with all seeds of the rung."""

    rung: int
    candidate: Candidate


class Choice(NamedTuple):
    """Rates that a kind takes, and whether better ones may lie beyond the tried ones."""

    candidate: Candidate
    on_edge: bool


Scores = Mapping[Asked, Sequence[float]]  # of each seed, in the same order for all candidates of a rung


def asked_next(scores: Scores, design: Design, *, has_own: bool) -> list[Asked]:
    """The trials to make next, none where `chosen` can choose.

    Args:
        scores: of all trials so far; larger is better, and a training that diverged has 0.
        design: how rates are searched.
        has_own: whether the kind learns anything at the rate of proxies.
    """
    levels = _levels(scores, design)
    candidates = [Candidate(*pair) for pair in product(*levels)]
    for rung in range(len(design.survivors) + 1):
        if rung:
            candidates = surviving(scores, rung - 1, candidates, design.survivors[rung - 1])
        if missing := _missing(scores, rung, candidates):
            return missing
        if beyond := _beyond(surviving(scores, rung, candidates, 1)[0], levels, design):
            return _missing(scores, 0, beyond)
    last = len(design.survivors)
    if missing := _missing(scores, last, _varied(candidates, has_own=has_own)):
        return missing
    compared = _compared(scores, last, candidates, has_own=has_own)
    return _missing(scores, last, _beyond_own(_choice(scores, last, compared, levels).candidate, compared))


def chosen(scores: Scores, design: Design, *, has_own: bool, twin: Candidate | None = None) -> Choice:
    """The best candidate of the last rung, or the plain twin's pair where that is as good, or else one off the edges.

    A pair is as good within one standard error of the paired difference over seeds; with one seed only if equal.

    Args:
        scores: of all trials, of which `asked_next` wants no more.
        design: how rates were searched.
        has_own: as for `asked_next`.
        twin: what the kind took that differs by the method alone.

    Raises:
        ValueError: for scores that lack a trial, naming it.
    """
    if missing := asked_next(scores, design, has_own=has_own):
        raise ValueError(f"no choice without {missing[0].candidate} at rung {missing[0].rung}")
    levels, last = _levels(scores, design), len(design.survivors)
    candidates = [Candidate(*pair) for pair in product(*levels)]
    for rung, kept in enumerate(design.survivors):
        candidates = surviving(scores, rung, candidates, kept)
    return _choice(scores, last, _compared(scores, last, candidates, has_own=has_own), levels, twin)


def surviving(scores: Scores, rung: int, candidates: Iterable[Candidate], kept: int) -> list[Candidate]:
    """Those with the best means over the seeds of a rung, best first; of equals the first."""
    return sorted(candidates, key=lambda each: -statistics.fmean(scores[Asked(rung, each)]))[:kept]


def is_tied(best: Sequence[float], other: Sequence[float]) -> bool:
    """Whether one candidate is better than another by no more than a standard error of the paired difference."""
    differences = [one - two for one, two in zip(best, other, strict=True)]
    error = statistics.stdev(differences) / sqrt(len(differences)) if len(differences) > 1 else 0.0
    return statistics.fmean(differences) <= error


def _missing(scores: Scores, rung: int, candidates: Iterable[Candidate]) -> list[Asked]:
    return [asked for each in candidates if (asked := Asked(rung, each)) not in scores]


def _levels(scores: Scores, design: Design) -> tuple[list[float], list[float]]:
    """Levels of trunk and head, with those that extended the grid."""
    first = [asked.candidate for asked in scores if asked.rung == 0]
    return (
        sorted({*design.trunk, *(each.trunk for each in first)}),
        sorted({*design.head, *(each.head for each in first)}),
    )


def _ends(rate: float, levels: Sequence[float]) -> bool:
    """Whether a rate lies on an edge; one that is not varied has none."""
    return len(levels) > 1 and not levels[0] < rate < levels[-1]


def _own_levels(pair: Candidate, compared: Iterable[Candidate]) -> list[float]:
    return sorted(each.own for each in compared if each[:2] == pair[:2])


def _compared(scores: Scores, last: int, survivors: list[Candidate], *, has_own: bool) -> list[Candidate]:
    """All candidates of the last rung: its survivors, and these with other rates."""
    pairs = {each[:2] for each in survivors}
    others = dict.fromkeys(_varied(survivors, has_own=has_own))
    others |= dict.fromkeys(each for rung, each in scores if rung == last and each.own != 1 and each[:2] in pairs)
    return [*survivors, *others]


def _choice(
    scores: Scores,
    last: int,
    compared: Sequence[Candidate],
    levels: tuple[list[float], list[float]],
    twin: Candidate | None = None,
) -> Choice:
    def on_edge(each: Candidate) -> bool:
        tried = (*levels, _own_levels(each, compared))
        return any(_ends(rate, of_part) for rate, of_part in zip(each, tried, strict=True))

    (best,) = surviving(scores, last, compared, 1)
    of_twin = [each for each in compared if twin is not None and each[:2] == twin[:2]]
    for alike in (of_twin, [each for each in compared if not on_edge(each)]):
        for other in surviving(scores, last, alike, 1):
            if is_tied(scores[Asked(last, best)], scores[Asked(last, other)]):
                return Choice(other, on_edge(other))
    return Choice(best, on_edge(best))


def _beyond(best: Candidate, levels: tuple[list[float], list[float]], design: Design) -> list[Candidate]:
    """The pairs of another level, beyond the edge on which the best lies; of a corner the trunk's come first."""
    trunk, head = levels
    if _ends(best.trunk, trunk) and len(trunk) < len(design.trunk) + EXTENSIONS:
        return [Candidate(_next(best.trunk, trunk), each) for each in head]
    if _ends(best.head, head) and len(head) < len(design.head) + EXTENSIONS:
        return [Candidate(each, _next(best.head, head)) for each in trunk]
    return []


def _beyond_own(best: Candidate, compared: Iterable[Candidate]) -> list[Candidate]:
    """The same pair with another rate of its own, where the best has the last one that was tried."""
    levels = _own_levels(best, compared)
    wanted = _ends(best.own, levels) and len(levels) < 1 + len(OWN) + EXTENSIONS
    return [best._replace(own=_next(best.own, levels))] if wanted else []


def _next(end: float, levels: Sequence[float]) -> float:
    """The level beyond an end, as far as the one before."""
    return _rounded(end * end / (levels[-2] if end == levels[-1] else levels[1]))


def _varied(candidates: Iterable[Candidate], *, has_own: bool) -> list[Candidate]:
    if has_own:
        return [each._replace(own=factor) for each in candidates for factor in OWN]
    return [each._replace(trunk=_rounded(each.trunk * factor)) for each in candidates for factor in BETWEEN]


def _rounded(rate: float) -> float:
    """To three digits, so that a file of trials gives it back."""
    return float(f"{rate:.3g}")
