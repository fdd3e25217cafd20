"""What series of measurements say of a claim: one number per seed, above zero where the claim is so.

Statistics that choose among cases, such as the best value or the worst case, would profit from noise if they were read
where they are chosen. For each seed the choice is made by the other seeds, and read in this one. So a worst case is no
worse than the worst, which would favour the claim that all are above zero: that one is held by all cases together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import chain, permutations
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from lookalike.figures.parts.form import Check
from lookalike.statistics.decisions import MARGIN

MOST = 0.75  # share of cases from which they count as most


def table(frame: pd.DataFrame, x: str, metric: str) -> Any:
    """Frame of ``metric`` in percent, a row per value of ``x`` in ascending order, a column per seed.

    Stated as ``Any``, as the types of pandas take rows chosen by their value for frames or complex numbers.
    """
    return 100 * frame.pivot_table(index=x, columns="seed", values=metric).sort_index()


def over_seeds(
    says: str,
    values: Any,
    *,
    unit: str = "points",
    margin: float = MARGIN,
    cases: Any = None,
    needed: int | None = None,
) -> Check:
    """A check of a number per seed.

    Args:
        says: what the paper says, and what else was found.
        values: series over the seeds, claimed to be above zero.
        unit: of the values.
        margin: below which their mean is small.
        cases: a `table` of all that is claimed to be above zero, where ``values`` are of the row that decides.
        needed: of how many rows it is claimed; of all where it is left out.

    Returns:
        The check; one that stays undecided, and says so, where a seed gives no finite number.
    """
    statistic = tuple(float(value) for value in values)
    every = () if cases is None else tuple(tuple(map(float, row)) for row in cases.to_numpy())
    if not all(map(isfinite, chain(statistic, *every))):
        found = ", ".join(f"{value:.3g}" for value in statistic)
        return Check(f"{says} (undecided, as a seed gives no finite number: {found} {unit})")
    return Check(says, statistic=statistic, unit=unit, margin=margin, cases=every, needed=needed)


def least(cases: Any, says: str, *, unit: str, margin: float = MARGIN) -> Check:
    """Whether all rows of a `table` are above zero: the least of them is."""
    return over_seeds(says, chosen(cases, pd.Series.idxmin), unit=unit, margin=margin, cases=cases)


def rising(values: Any, says: str) -> Check:
    """Whether a `table` rises: by how much from its first row to its last along a straight line over their order."""
    order = np.arange(len(values)) - (len(values) - 1) / 2
    slope = order @ values.to_numpy() / (order @ order)  # (S,) points per row
    means = values.mean(axis=1)
    steps = int((means.diff().dropna() > 0).sum())
    return over_seeds(
        f"{says}: it rises in {steps} of {len(means) - 1} steps from {means.index[0]:g} to {means.index[-1]:g}",
        slope * (len(values) - 1),
        unit="points along a straight line over the steps",
    )


def compared(values: Any, first: Hashable, second: Hashable, says: str) -> Check:
    """Whether one row of a `table` is higher than another."""
    return over_seeds(says, values.loc[first] - values.loc[second])


def always(differences: Sequence[pd.Series[float]], says: str) -> Check:
    """Whether each of several differences over the seeds is above zero: the least of them is."""
    cases = _cases(differences)
    return least(cases, f"{says}: {_counted(cases)}", unit="points in the worst case")


def mostly(differences: Sequence[pd.Series[float]], says: str) -> Check:
    """Whether `MOST` of several differences over the seeds are above zero, and so is their mean: the lesser of that
    mean and of the case that most of them reach is.
    """
    cases = _cases(differences)

    def lesser(means: pd.Series[float]) -> Hashable:
        reached = means.drop("mean").sort_values().index[int((1 - MOST) * len(cases))]
        return means[[reached, "mean"]].idxmin()

    together = pd.concat([cases, cases.mean().to_frame("mean").T])
    return over_seeds(
        f"{says}: {_counted(cases)}",
        chosen(together, lesser),
        unit="points on average and in most cases",
        cases=cases,
        needed=len(cases) - int((1 - MOST) * len(cases)),
    )


def best_within(values: Any, inside: Collection[Hashable], says: str) -> Check:
    """Whether the best row of a `table` is one of those inside: the best of them is above the best of the others."""
    means, among = values.mean(axis=1), values.index.isin(list(inside))
    return above(
        chosen(values[among], pd.Series.idxmax),
        values[~among],
        f"{says}: the highest mean, {means.max():.1f} %, is at {_named(means.idxmax())}",
        unit="points from the best outside to the best inside",
    )


def above(values: pd.Series[float], others: Any, says: str, *, unit: str = "points") -> Check:
    """Whether a number per seed is above every row of a `table`: above the highest of them."""
    return over_seeds(says, values - chosen(others, pd.Series.idxmax), unit=unit, cases=values - others)


def flat(values: Any, limit: float, says: str) -> Check:
    """Whether the rows of a `table` vary by at most ``limit`` points: highest less lowest is below it."""
    spread = chosen(values, pd.Series.idxmax) - chosen(values, pd.Series.idxmin)
    return over_seeds(
        f"{says}: it varies by {spread.mean():.1f} points (limit {limit:g})",
        limit - spread,
        unit="points below the limit",
        margin=0,
        cases=pd.DataFrame([limit - (values.loc[one] - values.loc[two]) for one, two in permutations(values.index, 2)]),
    )


def chosen(values: Any, choose: Callable[[pd.Series[float]], Hashable]) -> pd.Series[float]:
    """For each seed the row of a `table` that ``choose`` takes from the means of the other seeds; of the only one its
    own.
    """
    taken = {}
    for seed in values.columns:
        others = values.drop(columns=seed) if values.shape[1] > 1 else values
        taken[seed] = values.loc[choose(others.mean(axis=1)), seed]
    return pd.Series(taken)


def groups(frame: pd.DataFrame, by: list[str]) -> list[tuple[Any, pd.DataFrame]]:
    """Groups in order of appearance."""
    return [(key, rows) for key, rows in frame.groupby(by, sort=False)]


def value_range(values: Any, metric: str, label: str) -> Check:
    """By how much means vary over what is varied, and where they are highest; nothing is claimed."""
    means = values.mean(axis=1)
    says = f"{metric} varies by {means.max() - means.min():.1f} points; it is highest, {means.max():.1f} %, at "
    return Check(f"{says}{label} = {means.idxmax():g}", claimed=False)


def _cases(differences: Sequence[pd.Series[float]]) -> Any:
    """A row per difference, a column per seed."""
    return pd.concat([each.reset_index(drop=True) for each in differences], axis=1).T.reset_index(drop=True)


def _counted(cases: pd.DataFrame) -> str:
    return f"above zero in {int((cases.mean(axis=1) > 0).sum())} of {len(cases)} cases"


def _named(row: Any) -> str:
    return ", ".join(f"{part:g}" for part in row) if isinstance(row, tuple) else f"{row:g}"
