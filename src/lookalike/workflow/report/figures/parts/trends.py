"""Checks of a claim on series of measurements: one number per seed, above zero where the claim is so.

What is said of several cases, such as a best value or a worst case, is decided by all of them, see
`lookalike.workflow.report.statistics.cases`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.workflow.report.figures.parts.form import Check
from lookalike.workflow.report.statistics.decisions import MARGIN

MOST = 0.75  # share of cases from which they count as most


def table(frame: pd.DataFrame, x: str, metric: str) -> Any:
    """Frame of ``metric`` in percent, a row per value of ``x`` in ascending order, a column per seed.

    Stated as ``Any``, as the types of pandas take rows chosen by their value for frames or complex numbers.
    """
    return 100 * frame.pivot_table(index=x, columns="seed", values=metric).sort_index()


def over_seeds(says: str, values: Any, *, unit: str = "points", margin: float = MARGIN) -> Check:
    """A check of a number per seed.

    Args:
        says: what the paper says, and what else was found.
        values: series over the seeds, claimed to be above zero.
        unit: of the values.
        margin: below which their mean is small.

    Returns:
        The check; one that stays undecided, whatever earlier looks say, where a seed gives no finite number.
    """
    return _check(says, np.asarray(values, dtype=np.float64)[None, None], unit=unit, margin=margin)


def least(cases: Any, says: str, *, unit: str = "points", margin: float = MARGIN) -> Check:
    """Whether all rows of a `table` are above zero: the least of them is."""
    return _check(says, cases.to_numpy(dtype=np.float64)[None], unit=unit, margin=margin)


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
    """Whether `MOST` of several differences over the seeds are above zero, and so is their mean."""
    cases = _cases(differences)
    return _check(
        f"{says}: {_counted(cases)}",
        cases.to_numpy(dtype=np.float64)[None],
        needed=len(cases) - int((1 - MOST) * len(cases)),
        unit="points on average and in most cases",
    )


def best_within(values: Any, inside: Collection[Hashable], says: str, *, margin: float = MARGIN) -> Check:
    """Whether the best row of a `table` is one of those inside: the best of them is above all others."""
    among = values.index.isin(list(inside))
    own, others = values[among].to_numpy(), values[~among].to_numpy()
    return _check(
        says, own[:, None] - others[None], unit="points from the best outside to the best inside", margin=margin
    )


def highest(values: Any) -> str:
    """The row of a `table` with the highest mean, in words."""
    means = values.mean(axis=1)
    return f"the highest mean, {means.max():.1f} %, is at {_named(means.idxmax())}"


def above(values: pd.Series[float], others: Any, says: str) -> Check:
    """Whether a number per seed is above every row of a `table`: above the highest of them."""
    return least(values - others, says)


def flat(values: Any, limit: float, says: str) -> Check:
    """Whether the rows of a `table` vary by at most ``limit`` points: the difference of any two of them is below it."""
    means = values.mean(axis=1)
    pairs = [limit - (values.loc[one] - values.loc[two]) for one, two in permutations(values.index, 2)]
    return least(
        pd.DataFrame(pairs, columns=values.columns),
        f"{says}: means lie within {means.max() - means.min():.1f} points (limit {limit:g})",
        unit="points to spare",
        margin=0,
    )


def groups(frame: pd.DataFrame, by: list[str]) -> list[tuple[Any, pd.DataFrame]]:
    """Groups in order of appearance."""
    return [(key, rows) for key, rows in frame.groupby(by, sort=False)]


def value_range(values: Any, metric: str, label: str) -> Check:
    """Range of the means over the varied values, and the value with the highest; nothing is claimed."""
    means = values.mean(axis=1)
    says = f"{metric} varies by {means.max() - means.min():.1f} points; it is highest, {means.max():.1f} %, at "
    return Check(f"{says}{label} = {means.idxmax():g}", claimed=False)


def _check(
    says: str, cases: NDArray[np.float64], *, unit: str, margin: float = MARGIN, needed: int | None = None
) -> Check:
    if not cases.size:
        return Check(f"{says} (undecided, as there is nothing to compare with)")
    if not np.isfinite(cases).all():
        found = ", ".join(f"{value:.3g}" for value in cases[~np.isfinite(cases).all(axis=2)][0])
        return Check(f"{says} (undecided, as a seed gives no finite number: {found} {unit})")
    return Check(says, cases=cases.tolist(), needed=needed, unit=unit, margin=margin)


def _cases(differences: Sequence[pd.Series[float]]) -> Any:
    """A row per difference, a column per seed."""
    return pd.concat([*differences], axis=1).T.reset_index(drop=True)


def _counted(cases: pd.DataFrame) -> str:
    return f"above zero in {int((cases.mean(axis=1) > 0).sum())} of {len(cases)} cases"


def _named(row: Any) -> str:
    return ", ".join(f"{part:g}" for part in row) if isinstance(row, tuple) else f"{row:g}"
