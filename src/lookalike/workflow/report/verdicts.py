"""Verdicts on the papers' claims, from what both sides of each row reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.base.files import read_json
from lookalike.metrics.names import ON_OBJECT, REPORTED
from lookalike.workflow.plan.claims import SIDES, Comparison, Stated
from lookalike.workflow.report.by_class import SAME
from lookalike.workflow.report.differences import differences, values
from lookalike.workflow.report.gains import Gain, Trained, gains, over_rca
from lookalike.workflow.report.statistics import claim as rule
from lookalike.workflow.report.statistics.claim import (
    LOOKS,
    PRIMARY,
    SECOND,
    Direction,
    Judged,
    Quantifier,
    Row,
    judge,
)
from lookalike.workflow.report.statistics.crossed import Estimate, deviations
from lookalike.workflow.report.statistics.verdict import Verdict
from lookalike.workflow.report.tolerance import OF_RP
from lookalike.workflow.settings.layers import Tree

ROW = ["claim", "metric", "direction", "published", "dataset", "changed", "baseline", "besides", "decides"]
BEFORE = ["claim", "dataset", "changed", "baseline"]  # by which a file of the rule before names a row
OVER_RCA = ["rca", "over_rca", "over_rca_low", "over_rca_high", "over_rca_verdict"]  # of each side
INTERVAL = ["difference", "low", "high"]
PREFIXES = ("", OF_RP)  # of the columns of both verdicts: by the claim's metric, and by RP beside R@1
OF_ROW = [*INTERVAL, "seeds_error", "seeds_freedom", "level", "seeds", "verdict"]
OF_CLAIM = ["verdict", "error", "seeds", *INTERVAL]
CLAIM = ["claim", "quantifier", "regardless", *(f"{prefix}{name}" for prefix in PREFIXES for name in OF_CLAIM)]
UNKNOWN = Estimate(np.nan, (), 0, 0)


@dataclass(frozen=True)
class Measured:
    """A row of a claim as measured.

    Attributes:
        run: what was compared, of whatever seed.
        rows: its differences by the prefix of their columns.
        sides: by side what each seed reached of the claim's metric, in percent.
        start: R@1 in percent before training, of what has to have learned the least certain; NaN where nobody knows.
        gain: what training added to it.
    """

    run: Comparison
    rows: Mapping[str, Row]
    sides: Mapping[str, NDArray[np.float64]]
    start: float
    gain: Estimate


def measured(
    runs: Sequence[Tree], changed: Sequence[str], baseline: Sequence[str], models: Iterator[tuple[str, str]]
) -> Iterator[Measured]:
    """Rows of all claims in order, of files as for `claims`; models are those that have to have learned."""
    compared = [Comparison(**{**run, "learners": tuple(run["learners"])}) for run in runs]
    files: dict[Trained, dict[int, tuple[str, str]]] = {}
    for run in compared:
        for name in run.learners:
            files.setdefault(Trained(run.dataset, run.network, name), {})[run.seed] = next(models)
    found = gains(files)
    for run, group in groupby(zip(compared, changed, baseline, strict=True), lambda side: replace(side[0], seed=0)):
        of_seed, first, second = zip(*group, strict=True)
        seeds = [each.seed for each in of_seed]
        if run.metric == ON_OBJECT and not all(ON_OBJECT in read_json(file)[REPORTED] for file in (*first, *second)):
            continue
        told = (found[Trained(run.dataset, run.network, name)] for name in run.learners)
        start, gain = min(told, key=lambda each: _least(each.added), default=Gain(np.nan, UNKNOWN))
        own = SAME.get(run.metric, run.metric)
        metrics = {"": own, OF_RP: SECOND} if own == PRIMARY else {"": own}
        rows = {
            prefix: Row(
                run.changed,
                run.baseline,
                ", ".join(run.pool),
                metric,
                differences(first, second, metric, seeds),
                not run.learners or rule.learned(gain),
            )
            for prefix, metric in metrics.items()
        }
        sides_of = {"changed": values(first, run.metric), "baseline": values(second, run.metric)}
        yield Measured(run, rows, sides_of, start, gain)


def with_rca(
    rows: pd.DataFrame, runs: Sequence[Tree], changed: Sequence[str], baseline: Sequence[str], mapped: Sequence[str]
) -> pd.DataFrame:
    """Rows with the gain of training over each side's start after RCA: `OVER_RCA` for both, empty where there is none.

    Args:
        rows: as `judged` gives them.
        runs: with their files, as for `claims`.
        changed: beside them.
        baseline: beside them.
        mapped: beside them.
    """
    files: dict[Trained, dict[int, tuple[str, str]]] = {}
    of_run: dict[tuple[str, ...], dict[str, Trained]] = {}
    following = iter(mapped)
    for run, *sides in zip(runs, changed, baseline, strict=True):
        if run["has_rca"]:
            for side, file in zip(SIDES, sides, strict=True):
                trained = Trained(run["dataset"], run["network"], run[side])
                files.setdefault(trained, {})[run["seed"]] = (file, next(following))
                of_run.setdefault(tuple(run[name] for name in BEFORE), {})[side] = trained
    found = over_rca(files)
    cells = [
        {
            f"{side}_{name}": cell
            for side, trained in of_run.get(tuple(row[name] for name in BEFORE), {}).items()
            for name, cell in zip(OVER_RCA, found[trained], strict=True)
        }
        for row in rows.to_dict("records")
    ]
    columns = [f"{side}_{name}" for side in SIDES for name in OVER_RCA]
    return rows.join(pd.DataFrame(cells, columns=columns, index=rows.index))


def judged(
    stated: Stated, rows: Sequence[Measured], looks: Sequence[int] = LOOKS, left: Sequence[Comparison] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Verdicts on rows and on claims: about R@1, by RP beside, and about other numbers, each a family of its own.

    Args:
        stated: entries of ``params/claims.yaml`` by name.
        rows: of all claims.
        looks: as for `judge`.
        left: rows that are not run.

    Returns:
        A row per `Measured`: mean and deviation of both sides are of all seeds; `OF_ROW` are of those that were judged,
        and again by RP where that judges, too; ``gain_low`` is the one-sided bound of what training added to the start.
        And a row per claim that a pair decides: `OF_CLAIM` by both metrics, with an interval where it is the mean that
        is claimed, and the verdict ``regardless`` of what has learned. All in percent and percent points.
    """
    units = _units(rows)
    found = {prefix: _verdicts(stated, rows, units, prefix, looks, left) for prefix in PREFIXES}
    tested = [replace(each, rows={"": replace(each.rows[""], tested=True)}) for each in rows]
    regardless = _verdicts(stated, tested, units, "", looks, left)
    of_rows: dict[int, dict[str, Any]] = {}
    of_claims: list[dict[str, Any]] = []
    for number, unit in enumerate(units):
        run, told = rows[unit[0]].run, {prefix: found[prefix].get(number) for prefix in PREFIXES}
        claim = stated[run.claim]
        of_rows |= {place: _row_cells(rows[place], told, claim.direction, own) for own, place in enumerate(unit)}
        if run.decides:
            cells = {"claim": run.claim, "quantifier": claim.quantifier, "regardless": regardless[number].verdict}
            of_claims.append(cells | {key: cell for each in told.items() for key, cell in _claim_cells(*each).items()})
    ordered = [of_rows[place] for place in sorted(of_rows)]
    return pd.DataFrame(ordered, columns=None if ordered else [*ROW, *OF_ROW]), pd.DataFrame(of_claims, columns=CLAIM)


def _units(rows: Sequence[Measured]) -> list[list[int]]:
    """Places of rows that are judged together: those that decide a claim, and by itself each that stands beside."""
    found: dict[tuple[str, int], list[int]] = {}
    for place, each in enumerate(rows):
        found.setdefault((each.run.claim, -1 if each.run.decides else place), []).append(place)
    return list(found.values())


def _verdicts(
    stated: Stated,
    rows: Sequence[Measured],
    units: Sequence[Sequence[int]],
    prefix: str,
    looks: Sequence[int],
    left: Sequence[Comparison],
) -> dict[int, Judged]:
    """A metric's verdict by number of the unit, decided with all others about the same kind of number."""
    families: dict[bool, dict[int, rule.Claim]] = {}
    silent = Counter(each.claim for each in left if each.decides)
    alone = set(silent)  # claims of which nothing is run, each of which counts in its family
    for number, unit in enumerate(units):
        own, run = [rows[place].rows for place in unit], rows[unit[0]].run
        claim = stated[run.claim]
        alone -= {run.claim} if run.decides else set()
        if prefix in own[0]:
            families.setdefault(_is_primary(claim.metric), {})[number] = rule.Claim(
                [each[prefix] for each in own],
                Quantifier(claim.quantifier),
                Direction(claim.direction),
                silent[run.claim] if run.decides else 0,
            )
    others = Counter(_is_primary(stated[name].metric) for name in alone)
    return {
        number: told
        for kind, family in families.items()
        for number, told in zip(family, judge(list(family.values()), looks, silent=others[kind]), strict=True)
    }


def _is_primary(metric: str) -> bool:
    """Whether a claim about a metric is one about the primary one, under whatever name."""
    return SAME.get(metric, metric) == PRIMARY


def with_left(
    stated: Stated, rows: pd.DataFrame, verdicts: pd.DataFrame, left: Sequence[Comparison]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of `judged`, and behind the rows of each claim those that are not run, which say nothing but that."""
    said = {"verdict": Verdict.NOT_RUN}
    of_rows = [{name: getattr(each, name, stated[each.claim].direction) for name in ROW} | said for each in left]
    names = {each.claim for each in left} - {*verdicts["claim"]}
    of_claims = [
        {"claim": name, "quantifier": stated[name].quantifier, "regardless": Verdict.NOT_RUN} | said for name in names
    ]
    return _longer(rows, of_rows, [*stated]), _longer(verdicts, of_claims, [*stated])


def _longer(frame: pd.DataFrame, more: Sequence[Tree], order: Sequence[str]) -> pd.DataFrame:
    """With further lines behind those of their claim; whole numbers stay so beside nothing."""
    lines: list[dict[Any, Any]] = [*frame.to_dict("records"), *more]
    lines.sort(key=lambda line: order.index(line["claim"]))
    whole = dict.fromkeys(frame.select_dtypes("integer"), "Int64")
    return pd.DataFrame(lines, columns=frame.columns).astype(whole)


def _row_cells(each: Measured, found: Mapping[str, Judged | None], direction: str, place: int) -> dict[str, Any]:
    crossed = each.rows[""].differences
    varying = deviations(crossed.differences, crossed.weights)
    return {
        **{name: getattr(each.run, name, direction) for name in ROW},  # of which a run says all but the direction
        **{f"{side}_mean": values.mean() for side, values in each.sides.items()},
        **{f"{side}_deviation": values.std(ddof=1) for side, values in each.sides.items()},
        **{
            f"{prefix}{name}": cell for prefix in PREFIXES for name, cell in _judged_cells(found[prefix], place).items()
        },
        "queries": np.nan if crossed.weights is None else crossed.weights.sum(),
        "classes": crossed.differences.shape[1],
        "start": each.start,
        "gain": each.gain.mean,
        "gain_low": _least(each.gain),
        **{f"deviation_of_{name}": value for name, value in zip(("seeds", "classes", "both"), varying, strict=True)},
    }


def _judged_cells(found: Judged | None, place: int) -> dict[str, Any]:
    """`OF_ROW`; the error is that of a mean over seeds alone: how far other seeds lie on the same classes."""
    if found is None:
        return dict.fromkeys(OF_ROW)
    estimate = found.estimates[place]
    variance, freedom = estimate.parts[0]
    of_seeds = sqrt(variance), freedom, 100 * (1 - found.error), found.seeds, found.rows[place]
    return dict(zip(OF_ROW, [estimate.mean, *estimate.interval(found.error), *of_seeds], strict=True))


def _claim_cells(prefix: str, found: Judged | None) -> dict[str, Any]:
    if found is None:
        return {}
    mean = found.mean
    told = [mean.mean, *mean.interval(found.error)] if mean else [np.mean([each.mean for each in found.estimates])]
    cells = dict(zip(OF_CLAIM, [found.verdict, 100 * found.error, found.seeds, *told], strict=False))
    return {f"{prefix}{name}": cell for name, cell in cells.items()}


def _least(gain: Estimate) -> float:
    return gain.interval(2 * rule.NOT_LEARNED)[0]
