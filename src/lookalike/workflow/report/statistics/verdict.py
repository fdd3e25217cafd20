"""Verdicts on measurements: the words that comparisons, claims, figures and the gate write, and that pages count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum


class Verdict(StrEnum):
    """A word or two, as data files hold it.

    A claim *holds* or not; what a paper says of a figure is so, *yes* or *no*. Hence two pairs of words.
    """

    UNDECIDED = "undecided"  # of all that is asked of seeds: the measurements leave it open

    # Of a difference over seeds.
    HIGHER = "higher"
    LOWER = "lower"
    EQUAL = "equal"
    SMALL = "small"  # whatever its sign, below the margin

    # Of a claim.
    HOLDS = "holds"
    FAILS = "does not hold"
    NOT_TESTED = "not tested"  # what it builds on has not learned
    NOT_RUN = "not run"  # its trainings are not there, and nobody asked for them

    # Of a figure.
    YES = "yes"
    NO = "no"
    FIXED_YES = "without seeds: yes"
    FIXED_NO = "without seeds: no"
    MEASURED = "measured"
    NOT_MEASURED = "not measured"

    # Of a number beside its reference.
    PASS = "pass"
    WORSE = "worse"
    BETTER = "better"
    SUSPICIOUS = "suspicious"  # too good to be true
    MISSING = "missing"
    NEW = "new"


# In the order in which they are counted.
OF_CLAIMS = (
    Verdict.HOLDS,
    Verdict.FAILS,
    Verdict.SMALL,
    Verdict.UNDECIDED,
    Verdict.NOT_TESTED,
    Verdict.NOT_RUN,
)
OF_FIGURES = (
    Verdict.YES,
    Verdict.NO,
    Verdict.SMALL,
    Verdict.UNDECIDED,
    Verdict.FIXED_YES,
    Verdict.FIXED_NO,
    Verdict.MEASURED,
    Verdict.NOT_MEASURED,
)
OF_NUMBERS = (
    Verdict.PASS,
    Verdict.WORSE,
    Verdict.BETTER,
    Verdict.SUSPICIOUS,
    Verdict.MISSING,
    Verdict.NEW,
    Verdict.UNDECIDED,
)


def counted(verdicts: Iterable[str], possible: Sequence[Verdict]) -> dict[Verdict, int]:
    """Count of each possible verdict, 0 for one that was never reached.

    Args:
        verdicts: as a data file holds them.
        possible: `OF_CLAIMS`, `OF_FIGURES` or `OF_NUMBERS`.

    Raises:
        ValueError: for a word that is none of the possible ones, and so would be in no count.
    """
    counts = Counter(verdicts)
    if strange := [word for word in counts if word not in possible]:
        raise ValueError(f"verdict {str(strange[0])!r} is none of {', '.join(possible)}")
    return {verdict: counts[verdict] for verdict in possible}
