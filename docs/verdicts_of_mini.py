"""Judge the committed claims of `mini` by today's rule, from the deviations in their file.

``results/reference/mini/claims.csv`` is older than the rule (docs/verdicts.md). It has no metrics by class, but of each
row the deviations of seeds, of classes and of their combinations over all ten seeds, and the interval of the rule
before. From these follow the variances that today's rule asks for, and numbers by seed and class that have them.

What is not as in a run of today: there is one look, at all ten seeds, with the rate of a first look. Whether the
baseline had learned is *unknown*, as is RP. A deviation of seeds of 0 stands for seeds that vary no more than the noise
within classes. How much less follows from the interval, where that is of all ten seeds; else the noise is taken.

Usage: python docs/verdicts_of_mini.py
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit as student_quantile

from lookalike.base.files import replacing
from lookalike.workflow.plan.claims import SIDES, Comparison, claim_runs, read_claims
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.by_class import SAME
from lookalike.workflow.report.statistics.claim import Row
from lookalike.workflow.report.statistics.crossed import Crossed
from lookalike.workflow.report.verdicts import BEFORE, ROW, UNKNOWN, Measured, judged
from lookalike.workflow.settings.call import configuration

FOLDER = Path(__file__).resolve().parents[1] / "results" / "reference" / "mini"
SEEDS = 10
KEPT = [*ROW, "difference", "low", "high", "level", "seeds", "classes", "verdict", "before", "learned"]


def effective_classes(rows: pd.DataFrame) -> dict[tuple[str, int], float]:
    """By data set and number of classes how many of equal size would have these intervals: one over the sum of shares².

    Classes have unequal numbers of pictures, which the file does not say. A row of all ten seeds whose seeds vary more
    than the noise tells it; the median is taken, and all classes where no row does.
    """
    found = {}
    for (dataset, classes), own in rows.groupby(["dataset", "classes"]):
        told = own[(own["seeds"] == SEEDS) & (own["deviation_of_seeds"] > 0) & (classes > 1)]
        of_seeds, of_classes = (student_quantile(freedom, _tail(told)) ** 2 for freedom in (SEEDS - 1, classes - 1))
        half = ((told["high"] - told["low"]) / 2) ** 2
        per_class = of_seeds * told["deviation_of_both"] ** 2 / SEEDS + of_classes * told["deviation_of_classes"] ** 2
        shares = (half - of_seeds * told["deviation_of_seeds"] ** 2 / SEEDS) / per_class
        found[dataset, classes] = float(1 / shares.median()) if len(told) else float(classes)
    return found


def variances_of(row: Mapping[str, Any], classes: float) -> tuple[float, float, float]:
    """Variances of a mean over seeds and over classes, each with that of the combinations, and of these alone."""
    of_both = row["deviation_of_both"] ** 2 / classes / SEEDS
    of_classes = row["deviation_of_classes"] ** 2 / classes
    over_seeds = row["deviation_of_seeds"] ** 2 / SEEDS + of_both
    if row["deviation_of_seeds"] == 0 and row["seeds"] == SEEDS:
        half = (row["high"] - row["low"]) / 2
        of_interval = half**2 - of_classes * float(student_quantile(max(classes - 1, 1), _tail(row))) ** 2
        over_seeds = max(0.0, of_interval / float(student_quantile(SEEDS - 1, _tail(row))) ** 2)
    return over_seeds, of_classes + of_both, of_both


def _tail(row: Any) -> Any:
    return 1 - (1 - row["level"] / 100) / 2


def with_variances(mean: float, over_seeds: float, over_classes: float, of_both: float, classes: int) -> Crossed:
    """Numbers by seed and class that have these variances, whatever else they are."""
    by_seed, by_class = _spread(SEEDS), _spread(classes)
    values = mean + by_seed[:, None] * sqrt(over_seeds * SEEDS)
    if classes > 1:
        values = values + by_class * sqrt(over_classes * classes)
        values = values + np.outer(by_seed, by_class) * sqrt(of_both * SEEDS * classes)
    return Crossed(values)


def _spread(count: int) -> NDArray[np.float64]:
    """Numbers with a mean of 0 and a variance of 1; 0 for a single one."""
    steps = np.arange(count) - (count - 1) / 2
    return steps / steps.std(ddof=1) if count > 1 else steps


def measured(run: Comparison, row: Mapping[str, Any], classes: float) -> Measured:
    """A row of the file as one of a run."""
    told = with_variances(row["difference_of_all"], *variances_of(row, classes), row["classes"])
    sides = {side: row[f"{side}_mean"] + row[f"{side}_deviation"] * _spread(2) for side in SIDES}
    of_rule = Row(run.changed, run.baseline, ", ".join(run.pool), SAME.get(run.metric, run.metric), told)
    return Measured(run, {"": of_rule}, sides, nan, UNKNOWN)


def verdicts(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows with both rules' answers, and claims.

    Args:
        rows: of the committed file.
    """
    plan, effective = Plan(configuration("mini", [])), effective_classes(rows)
    stated = read_claims(plan)
    runs = {tuple(getattr(run, name) for name in BEFORE): run for run in claim_runs(plan, stated)}
    own = [
        measured(runs[tuple(row[name] for name in BEFORE)], row, effective[row["dataset"], row["classes"]])
        for row in rows.to_dict("records")
    ]
    found, claims = judged(stated, own, [SEEDS])
    return found.assign(before=rows["verdict"], learned="unknown")[KEPT], claims


def main() -> None:
    """Write rows and claims beside the committed file."""
    found, claims = verdicts(pd.read_csv(FOLDER / "claims.csv"))
    for name, frame in (("claims_judged", found), ("claim_verdicts", claims)):
        with replacing(str(FOLDER / f"{name}.csv")) as temporary:
            frame.to_csv(temporary, index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
