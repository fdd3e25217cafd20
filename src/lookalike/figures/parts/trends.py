"""What a series of measurements says, in words with its numbers: no more than its seeds allow."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from lookalike.figures.parts.form import Check
from lookalike.statistics.verdict import Verdict

RISING = 0.5  # rank correlation from which a series counts as rising
MOST = 0.75  # share of cases from which they count as most; in between their number says no more than a coin


def table(frame: pd.DataFrame, x: str, metric: str) -> Any:
    """Frame of ``metric`` in percent, a row per value of ``x`` in ascending order, a column per seed.

    Stated as ``Any``, as the types of pandas take rows chosen by their value for frames or complex numbers.
    """
    return 100 * frame.pivot_table(index=x, columns="seed", values=metric).sort_index()


def difference(first: pd.Series[float], second: pd.Series[float]) -> tuple[str, bool | None]:
    """Paired difference over the seeds of two series of percentages.

    Returns:
        The difference in words, and whether ``first`` is higher: from one seed what that run shows, and says that it is
        one; from several ``None`` where the interval of 95 % holds zero.
    """
    from lookalike.statistics.pairs import paired_difference

    paired = paired_difference(list(first), list(second))
    if paired.n == 1:
        return f"{paired.mean:+.1f} points, one seed", paired.mean > 0
    interval = f"95 % interval {paired.low:+.1f} to {paired.high:+.1f}, {paired.n} seeds"
    decided = {Verdict.HIGHER: True, Verdict.LOWER: False, Verdict.EQUAL: False}.get(paired.verdict)
    return f"{paired.mean:+.1f} points ({interval}{'' if decided is not None else ', undecided'})", decided


def rising(values: Any, says: str) -> Check:
    """Whether a `table` rises from its first row to its last: by the ends, and by ranks in between."""
    means = values.mean(axis=1)
    steps = int((means.diff().dropna() > 0).sum())
    words, higher = difference(values.iloc[-1], values.iloc[0])
    correlation = means.rank().corr(means.reset_index(drop=True).index.to_series(index=means.index).rank())
    text = (
        f"{says}: from {means.index[0]:g} to {means.index[-1]:g} {words}; rises in {steps} of {len(means) - 1} steps, "
        f"rank correlation {correlation:+.2f}"
    )
    return Check(text, None if higher is None else higher and bool(correlation >= RISING))


def compared(values: Any, first: Hashable, second: Hashable, says: str) -> Check:
    """Whether one row of a `table` is higher than another."""
    words, higher = difference(values.loc[first], values.loc[second])
    return Check(f"{says}: {words}", higher)


def always(differences: list[pd.Series[float]], says: str) -> Check:
    """Whether each of several differences over the seeds is above zero, and so is their mean as far as seeds tell."""
    text, above, higher = _counted(differences, says)
    return Check(text, None if higher is None else higher and above == len(differences))


def mostly(differences: list[pd.Series[float]], says: str) -> Check:
    """Whether most of several differences over the seeds are above zero, and so is their mean.

    Left open where neither `MOST` of them are above zero nor as many below, or where their mean says the opposite.
    """
    text, above, higher = _counted(differences, says)
    share = above / len(differences)
    most = True if share >= MOST else False if share <= 1 - MOST else None
    return Check(text, most if most == higher else None)


def _counted(differences: list[pd.Series[float]], says: str) -> tuple[str, int, bool | None]:
    """In words; how many are above zero; whether their mean is."""
    above = sum(float(each.mean()) > 0 for each in differences)
    together = pd.concat(differences, axis=1).mean(axis=1)
    words, higher = difference(together, 0 * together)
    return f"{says}: in {above} of {len(differences)} cases, on average {words}", above, higher


def groups(frame: pd.DataFrame, by: list[str]) -> list[tuple[Any, pd.DataFrame]]:
    """Groups in order of appearance."""
    return [(key, rows) for key, rows in frame.groupby(by, sort=False)]


def value_range(values: Any, metric: str, label: str) -> Check:
    """By how much means vary over what is varied, and where they are highest; nothing is claimed."""
    means = values.mean(axis=1)
    says = f"{metric} varies by {spread_of(values):.1f} points; it is highest, {means.max():.1f} %, at "
    return Check(f"{says}{label} = {means.idxmax():g}", None, claimed=False)


def spread_of(values: Any) -> float:
    """Largest mean less the smallest."""
    means = values.mean(axis=1)
    return float(means.max() - means.min())


def seeds_behind(values: Any) -> str:
    """Over how many seeds the means are that a verdict rests on."""
    return "; one seed" if values.shape[1] == 1 else f"; means of {values.shape[1]} seeds"
