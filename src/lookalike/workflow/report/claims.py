"""What the papers claim in words, held against measured runs: which claims and runs, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.base.checks import require_known
from lookalike.base.files import read_json, replacing, write_text
from lookalike.methods import METHODS
from lookalike.metrics.names import OF_ATTENTION, ON_OBJECT, ON_TRAINING, REPORTED
from lookalike.workflow.plan.on_data import START
from lookalike.workflow.plan.rates import COMPARED
from lookalike.workflow.plan.scales import half_of_seed, measured_metrics
from lookalike.workflow.report.by_class import SAME, class_means
from lookalike.workflow.report.statistics import claim as rule
from lookalike.workflow.report.statistics.claim import (
    LOOKS,
    LOOKS_AT_HALVES,
    PRIMARY,
    RATES,
    Direction,
    Judged,
    Quantifier,
    Row,
    judge,
)
from lookalike.workflow.report.statistics.crossed import Crossed, Estimate, deviations
from lookalike.workflow.report.statistics.decisions import margin_of
from lookalike.workflow.report.statistics.verdict import OF_CLAIMS, counted
from lookalike.workflow.report.tables.layout import DASH
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import dataset_names, read, read_entries
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.pages import Claim
from lookalike.workflow.settings.recipes import Recipe

if TYPE_CHECKING:
    from lookalike.workflow.plan.evidence import Evidence
    from lookalike.workflow.plan.plan import Plan

FILE = "params/claims.yaml"
ROUNDED = 1e-5  # classes are written with six digits
ROW = ["claim", "metric", "direction", "published", "dataset", "changed", "baseline"]
BEFORE = ["claim", "dataset", "changed", "baseline"]  # by which a file of the rule before names a row
SIDES = ("changed", "baseline")
INTERVAL = ["difference", "low", "high"]
RP = [f"rp_{name}" for name in INTERVAL]
CLAIM = ["claim", "quantifier", "verdict", "regardless", "error", "seeds", *INTERVAL]
OF_ROWS = {"every": "in every row", "mean": "in the mean of rows", "some": "in some rows"}
Stated = Mapping[str, Claim]  # entries of `FILE` by name


@dataclass(frozen=True)
class Comparison:
    """What a claim is held against on a data set: two recipes, for one seed."""

    claim: str
    metric: str
    published: str
    dataset: str
    network: str
    changed: str
    baseline: str
    learners: tuple[str, ...]
    """Recipes that have to have learned: the baseline, or what both sides are without their disturbance."""
    seed: int

    def read(self, side: str) -> list[tuple[str, str]]:
        """Kind of file and recipe of all that is read: of ``changed`` and ``baseline`` what is claimed about, of the
        learners metrics, ``learned`` after training and ``started`` before.
        """
        if side in ("changed", "baseline"):
            return [("attribution" if self.metric in OF_ATTENTION else "metrics", getattr(self, side))]
        return [("metrics", f"{START if side == 'started' else ''}{recipe}") for recipe in self.learners]


class Claims:
    """Claims of one call, and the files with what their runs have reached.

    Args:
        evidence: of the call.

    Attributes:
        stated: as `read_claims` gives them.

    Raises:
        ValueError: as `read_claims` and `claim_runs`.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.stated = read_claims(evidence.plan)
        self._runs = claim_runs(evidence.plan, self.stated)

    def files(self, side: str) -> Callable[[Any], list[str]]:
        """Files of all runs in order, of a side of `Comparison.read`."""
        stored, plan = self._evidence.inputs.stored, self._evidence.plan

        def files(wildcards: Any) -> list[str]:
            for dataset in self.datasets:
                plan.check_halves(dataset, plan.several_seeds)
            return [
                stored(kind, recipe, run.dataset, run.seed) for run in self._runs for kind, recipe in run.read(side)
            ]

        return files

    @property
    def datasets(self) -> list[str]:
        """Those with claims."""
        return sorted({run.dataset for run in self._runs})

    def models(self, wildcards: Any) -> list[tuple[str, int]]:
        """Recipe and seed of all models of a data set that claims or the comparison speak of."""
        plan, dataset = self._evidence.plan, wildcards.dataset
        recipes = {
            recipe
            for run in self._runs
            if run.dataset == dataset
            for side in ("changed", "baseline", "learned", "started")
            for _, recipe in run.read(side)
        }
        if COMPARED in plan.known_tables:
            compared = plan.runs_of(COMPARED)
            recipes |= {*compared.loc[compared["dataset"] == dataset, "recipe"]}
        return [(recipe, seed) for recipe in sorted(recipes) for seed in plan.several_seeds]

    def metrics(self, wildcards: Any) -> list[str]:
        """Metrics of each of `models`."""
        stored = self._evidence.inputs.stored
        return [stored("metrics", recipe, wildcards.dataset, seed) for recipe, seed in self.models(wildcards)]

    def runs(self, wildcards: Any, input: Any) -> list[Tree]:
        """The runs that claims are held against, without their files; refuses results of older code."""
        for side in ("changed", "baseline", "learned", "started"):
            recipes = [(recipe, run.dataset, run.seed) for run in self._runs for _, recipe in run.read(side)]
            self._evidence.check_results(getattr(input, side), recipes)
        return [asdict(run) for run in self._runs]


def read_claims(plan: Plan) -> dict[str, Claim]:
    """All claims by name, those without data at this scale too.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown recipe or published data set.
    """
    claims = read_entries(FILE, Claim)
    datasets = dataset_names()
    of_retrieval = measured_metrics([read(f"params/datasets/{dataset}.yaml", Dataset) for dataset in datasets])
    for name, claim in claims.items():
        require_known(f"{FILE}, {name}.metric", claim.metric, {*of_retrieval, *OF_ATTENTION})
        for dataset in claim.datasets:
            require_known(f"{FILE}, {name}.datasets", dataset, datasets)
        for place, pair in enumerate(claim.pairs):
            sides = [(side, getattr(pair, side)) for side in SIDES]
            for side, recipe in [*sides, *(("undisturbed", recipe) for recipe in pair.undisturbed)]:
                require_known(f"{FILE}, {name}.pairs.{place}.{side}", recipe, plan.recipe_names)
    return claims


def claim_runs(plan: Plan, claims: Stated) -> list[Comparison]:
    """One entry per claim, data set of this scale, pair and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two.
        claims: as `read_claims` gives them.

    Raises:
        ValueError: for a pair that cannot run at this scale, or a metric that one of its recipes does not measure.
    """
    pairs = [
        (name, claim, published, dataset.name, pair)
        for name, claim in claims.items()
        for published in claim.datasets
        for dataset in plan.datasets.values()
        if dataset.stands_for == published
        for pair in claim.pairs
    ]
    comparisons = []
    for name, claim, published, dataset, pair in pairs:
        learners = tuple(pair.undisturbed) or (pair.baseline,)
        for recipe in (pair.changed, pair.baseline, *learners, *(f"{START}{learner}" for learner in learners)):
            plan.check_run(recipe, dataset)
        for recipe in (pair.changed, pair.baseline):
            _check_measured(plan.settings(recipe, dataset), claim.metric, recipe, f"{FILE}, {name}.metric")
        network = plan.settings(pair.baseline, dataset).train.backbone.name
        sides = claim.metric, published, dataset, network, pair.changed, pair.baseline
        comparisons += [Comparison(name, *sides, learners, seed) for seed in plan.several_seeds]
    return comparisons


def _check_measured(settings: Recipe, metric: str, recipe: str, place: str) -> None:
    method = settings.train.method.name
    if metric in OF_ATTENTION and not METHODS[method].has_attention:
        allowed = " or ".join(name for name, each in METHODS.items() if each.has_attention)
        raise ValueError(f"{place}: {metric} needs train.method {allowed}; recipe {recipe} trains {method}")
    if metric.startswith(ON_TRAINING) and not settings.embed.training_pictures:
        raise ValueError(f"{place}: {metric} needs embed.training_pictures, which recipe {recipe} does not set")


def judged_by(metric: str) -> tuple[str, ...]:
    """Metrics that judge a claim about one: both primary ones where it is the first of them, under whatever name."""
    return PRIMARY if SAME.get(metric, metric) == PRIMARY[0] else (metric,)


@dataclass(frozen=True)
class Measured:
    """A row of a claim as measured.

    Attributes:
        run: what was compared, of whatever seed.
        row: the differences in percent points.
        sides: by side what each seed reached of the claim's metric, in percent.
        start: R@1 in percent before training, of what has to have learned the least certain.
        gain: what training added to it.
    """

    run: Comparison
    row: Row
    sides: Mapping[str, NDArray[np.float64]]
    start: float
    gain: Estimate


def claims(
    claims: Mapping[str, Tree],
    runs: Sequence[Tree],
    *,
    scale: str,
    crossed: bool,
    changed: Sequence[str],
    baseline: Sequence[str],
    learned: Sequence[str],
    started: Sequence[str],
    output: str,
    verdicts: str,
    before: str = "",
) -> None:
    """Write the verdict on every claim as CSV and Markdown.

    Args:
        claims: entries of ``params/claims.yaml`` by name, as they are written.
        runs: as `claim_runs` gives them, in mappings.
        scale: what the scale calls itself.
        crossed: whether seeds train on either half of the classes.
        changed: JSON files with what the changed recipes reached, in the order of the runs; beside those of retrieval
            lies what their classes reached. Where the pictures have no masks they do not tell what lies on the object,
            and what is claimed of it has no data.
        baseline: the same of the baselines.
        learned: JSON files of the metrics of all that has to have learned, in the order of runs and learners.
        started: the same before any training.
        output: CSV to write, with every row; ``.md`` beside it is for readers.
        verdicts: CSV to write, with every claim.
        before: CSV with what the rule before said of rows that are older than this rule, if there are any.

    Raises:
        ValueError: for a file without the metric that is claimed about, sides that were not tested on the same
            pictures, and a file that its classes contradict.
    """
    stated = {name: checked(Claim, claim, name) for name, claim in claims.items()}
    rows = list(measured(runs, changed, baseline, zip(learned, started, strict=True)))
    looks = LOOKS_AT_HALVES if crossed else LOOKS
    of_rows, of_claims = judged(stated, rows, looks)
    if before:
        said = pd.read_csv(before).rename(columns={"verdict": "before"})
        of_rows = of_rows.merge(said, "left", BEFORE, validate="one_to_one")
    for path, frame in ((output, of_rows), (verdicts, of_claims)):
        with replacing(path) as temporary:
            frame.to_csv(temporary, index=False, float_format="%.4f")
    shown = pd.read_csv(output), pd.read_csv(verdicts)  # rounded as there, so that the two say the same
    write_text(Path(output).with_suffix(".md"), markdown(stated, *shown, scale=scale, looks=looks))


def measured(
    runs: Sequence[Tree], changed: Sequence[str], baseline: Sequence[str], models: Iterator[tuple[str, str]]
) -> Iterator[Measured]:
    """Rows of all claims in order, of files as for `claims`; models are those that have to have learned."""
    compared = [Comparison(**{**run, "learners": tuple(run["learners"])}) for run in runs]
    of_models = [[next(models) for _ in run.learners] for run in compared]
    sides = zip(compared, changed, baseline, of_models, strict=True)
    for run, group in groupby(sides, lambda side: replace(side[0], seed=0)):
        of_seed, first, second, of_seeds = zip(*group, strict=True)
        seeds = [each.seed for each in of_seed]
        if run.metric == ON_OBJECT and not all(ON_OBJECT in read_json(file)[REPORTED] for file in (*first, *second)):
            continue
        gains = []
        for of_learner in zip(*of_seeds, strict=True):
            after, before = zip(*of_learner, strict=True)
            gains.append((differences(after, before, PRIMARY[0], seeds).estimate(), _values(before, PRIMARY[0]).mean()))
        gain, start = min(gains, key=lambda each: _least(each[0]))
        metrics = {metric: differences(first, second, metric, seeds) for metric in judged_by(run.metric)}
        row = Row(run.changed, run.baseline, f"{run.dataset}, {run.network}", metrics, rule.learned(gain))
        sides_of = {"changed": _values(first, run.metric), "baseline": _values(second, run.metric)}
        yield Measured(run, row, sides_of, float(start), gain)


def differences(changed: Sequence[str], baseline: Sequence[str], metric: str, seeds: Sequence[int]) -> Crossed:
    """Differences in percent points by seed and class; as of one class where classes are not told apart.

    Args:
        changed: files of one side, by seed.
        baseline: of the other.
        metric: what is compared.
        seeds: of the files.

    Returns:
        NaN where a seed trained on a class and was tested on the other half.

    Raises:
        ValueError: for sides or seeds of a half that were not tested on the same pictures, a file that its classes
            contradict, and seeds of which only some tell classes apart.
    """
    told = [_of_classes(*files, metric) for files in zip(changed, baseline, strict=True)]
    untold = [file for file, each in zip(changed, told, strict=True) if each is None]
    if untold and len(untold) < len(told):
        raise ValueError(
            f"{untold[0]} or what it is compared with has no numbers by class, other seeds have; remove its metrics, "
            "and the next call measures them anew"
        )
    of_classes = [each for each in told if each is not None]
    if not of_classes:
        return Crossed((_values(changed, metric) - _values(baseline, metric))[:, None])
    return by_class(changed, seeds, of_classes)


def by_class(files: Sequence[str], seeds: Sequence[int], told: Sequence[pd.DataFrame]) -> Crossed:
    """The same of files' ``difference`` and ``queries`` by class, which are those of its half for each seed."""
    first: dict[str, int] = {}
    for place, seed in enumerate(seeds):
        own = told[place]["queries"]
        for half, other in first.items():
            same = own.equals(told[other]["queries"])
            apart = half != half_of_seed(seed) and own.index.intersection(told[other].index).empty
            if not (same or apart):
                raise ValueError(
                    f"{files[place]} was not tested on the classes of {files[other]}; remove what is of older data"
                )
        first.setdefault(half_of_seed(seed), place)
    found = pd.concat([each["difference"] for each in told], axis="columns").sort_index()
    queries = pd.concat([told[place]["queries"] for place in first.values()], axis="columns").max(axis="columns")
    return Crossed(100 * found.to_numpy(float).T, queries.loc[found.index].to_numpy(float))


def _of_classes(changed: str, baseline: str, metric: str) -> pd.DataFrame | None:
    """By class the difference and the number of queries, ``None`` for a metric that is not told by class."""
    first, second = (class_means(path, REPORTED, metric) for path in (changed, baseline))
    if first is None or second is None:
        return None
    difference = first["value"] - second["value"]
    if difference.isna().any() or not first["queries"].equals(second["queries"]):
        raise ValueError(f"{changed} and {baseline} were not tested on the same pictures; remove what is of older data")
    for path, side in ((changed, first), (baseline, second)):
        of_all, [told] = float(np.average(side["value"], weights=side["queries"])), _values([path], metric) / 100
        if abs(of_all - told) > ROUNDED:
            raise ValueError(
                f"{path} says {metric} {told:.4f}, its classes come to {of_all:.4f}; remove it and the file of the "
                "classes, and the next call measures them anew"
            )
    return pd.DataFrame({"difference": difference, "queries": first["queries"]})


def _values(paths: Sequence[str], metric: str) -> NDArray[np.float64]:
    """What each file says of a metric, in percent."""
    found = [read_json(path)[REPORTED] for path in paths]
    for path, values in zip(paths, found, strict=True):
        if metric not in values:
            raise ValueError(f"{path} holds no {metric}; it holds {', '.join(sorted(values))}")
    return 100 * np.array([float(values[metric]) for values in found])


def judged(stated: Stated, rows: Sequence[Measured], looks: Sequence[int] = LOOKS) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Verdicts on rows and on claims, decided together.

    Args:
        stated: entries of ``params/claims.yaml`` by name.
        rows: of all claims.
        looks: as for `judge`.

    Returns:
        A row per `Measured`: mean and deviation of both sides are of all seeds; differences, that of RP beside it where
        both judge, and their intervals of one ``level`` are of those that were judged; ``gain_low`` is the one-sided
        bound of what training added to the start. And a row per claim, with the verdict ``regardless`` of what has
        learned, and an interval where it is the mean that is claimed. All in percent and percent points.
    """
    own = [list(each) for _, each in groupby(rows, lambda row: row.run.claim)]
    claims = [stated[each[0].run.claim] for each in own]
    asked = [
        rule.Claim([each.row for each in of_claim], Quantifier(claim.quantifier), Direction(claim.direction))
        for claim, of_claim in zip(claims, own, strict=True)
    ]
    found = judge(asked, looks)
    always = [replace(each, rows=[replace(row, tested=True) for row in each.rows]) for each in asked]
    regardless = judge(always, looks)
    of_rows = [
        _row_cells(each, told, claim.direction, place)
        for claim, of_claim, told in zip(claims, own, found, strict=True)
        for place, each in enumerate(of_claim)
    ]
    of_claims = [
        {"claim": of_claim[0].run.claim, "quantifier": claim.quantifier}
        | {"verdict": told.verdict, "regardless": without.verdict, "error": 100 * told.error, "seeds": told.seeds}
        | _mean_cells(told, judged_by(claim.metric)[0])
        for claim, of_claim, told, without in zip(claims, own, found, regardless, strict=True)
    ]
    return pd.DataFrame(of_rows, columns=None if of_rows else [*ROW, "verdict"]), pd.DataFrame(of_claims, columns=CLAIM)


def _row_cells(each: Measured, found: Judged, direction: str, place: int) -> dict[str, Any]:
    metrics, estimates = judged_by(each.run.metric), found.estimates[place]
    error = found.error / len(metrics)  # either of two may decide
    crossed = each.row.metrics[metrics[0]]
    varying = deviations(crossed.differences, crossed.weights)
    return {
        **{name: getattr(each.run, name, direction) for name in ROW},  # of which a run says all but the direction
        **{f"{side}_mean": values.mean() for side, values in each.sides.items()},
        **{f"{side}_deviation": values.std(ddof=1) for side, values in each.sides.items()},
        **_interval_cells(INTERVAL, estimates[metrics[0]], error),
        **(_interval_cells(RP, estimates[metrics[1]], error) if metrics[1:] else dict.fromkeys(RP)),
        **_seeds_cells("", estimates[metrics[0]]),
        **(_seeds_cells("rp_", estimates[metrics[1]]) if metrics[1:] else {}),
        "level": 100 * (1 - error),
        "seeds": found.seeds,
        "queries": np.nan if crossed.weights is None else crossed.weights.sum(),
        "classes": crossed.differences.shape[1],
        "verdict": found.rows[place],
        "start": each.start,
        "gain": each.gain.mean,
        "gain_low": _least(each.gain),
        **{f"deviation_of_{name}": value for name, value in zip(("seeds", "classes", "both"), varying, strict=True)},
    }


def _mean_cells(found: Judged, metric: str) -> dict[str, float]:
    if found.mean:
        return _interval_cells(INTERVAL, found.mean[metric], found.error)
    return {"difference": float(np.mean([each[metric].mean for each in found.estimates]))}


def _interval_cells(names: Sequence[str], estimate: Estimate, error: float) -> dict[str, float]:
    return dict(zip(names, [estimate.mean, *estimate.interval(error)], strict=True))


def _seeds_cells(prefix: str, estimate: Estimate) -> dict[str, float]:
    """Error of a mean over seeds alone, and its degrees of freedom: how far other seeds lie on the same classes."""
    variance, freedom = estimate.parts[0]
    return {f"{prefix}seeds_error": sqrt(variance), f"{prefix}seeds_freedom": freedom}


def _least(gain: Estimate) -> float:
    return gain.interval(2 * rule.NOT_LEARNED)[0]


def markdown(stated: Stated, rows: pd.DataFrame, verdicts: pd.DataFrame, *, scale: str, looks: Sequence[int]) -> str:
    """All claims for readers, from what `judged` gives: how many hold, a line per claim, then a table per claim."""
    verdicts = verdicts.set_index("claim")
    lines = [_claim_line(name, claim, rows, verdicts) for name, claim in stated.items()]
    parts = ["# What the papers claim, and what was measured here", _notes(rows, verdicts, scale, looks)]
    parts += [_table(_counts(stated, verdicts)), _table(lines)]
    for name, claim in stated.items():
        printed = {(pair.changed, pair.baseline): pair.as_in_paper for pair in claim.pairs}
        own = [_row_line(row, printed) for _, row in rows[rows["claim"] == name].iterrows()]
        asked = f"{claim.says} ({claim.place}.) Claimed: {_claimed(claim)}."
        told = f"**{verdicts['verdict'][name].capitalize()}.** " if own else ""
        parts += [f"## {name}", f"{told}{asked}", _table(own) if own else "Not tested: no data."]
    return "\n\n".join(parts) + "\n"


def _table(lines: Sequence[Mapping[str, str]]) -> str:
    return pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True)


def _counts(stated: Stated, verdicts: pd.DataFrame) -> list[dict[str, str]]:
    """How many claims have each verdict: those that either sign fulfils apart, with and without the starts."""
    kinds = {"of one sign": Direction.DIFFERENT.__ne__, "that either sign fulfils": Direction.DIFFERENT.__eq__}
    return [
        {"claims": f"{kind}{words}"} | {each: str(count) for each, count in counted(own, OF_CLAIMS).items()}
        for kind, is_of in kinds.items()
        for column, words in (("verdict", ""), ("regardless", ", whatever has learned"))
        for own in [verdicts[column][[is_of(stated[name].direction) for name in verdicts.index]]]
    ]


def _claimed(claim: Claim) -> str:
    return f"{claim.metric} {claim.direction}, {OF_ROWS[claim.quantifier]}"


def _claim_line(name: str, claim: Claim, rows: pd.DataFrame, verdicts: pd.DataFrame) -> dict[str, str]:
    own = rows[rows["claim"] == name]
    return {
        "claim": name,
        "verdict": verdicts["verdict"][name] if len(own) else "no data",
        "claimed": _claimed(claim),
        "place": claim.place,
        "mean difference": f"{verdicts['difference'][name]:+.1f}" if len(own) else DASH,
        **{f"rows: {each}": str(count) for each, count in counted(own["verdict"], OF_CLAIMS).items()},
    }


def _row_line(row: pd.Series, printed: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, str]:
    """Cells of a row, given what else the papers' own baselines have by pair."""
    others = ", ".join(printed[row["changed"], row["baseline"]])
    stand_in = "" if row["dataset"] == row["published"] else f" ({row['dataset']})"
    before = {"rule before": row["before"] if isinstance(row["before"], str) else DASH} if "before" in row else {}
    return {
        "data set": f"{row['published']}{stand_in}",
        "changed": row["changed"],
        "baseline": f"{row['baseline']}{others and f' (as in the paper, with its own {others})'}",
        **{f"{side} mean": f"{row[f'{side}_mean']:.1f} ± {row[f'{side}_deviation']:.1f}" for side in SIDES},
        "difference": _interval(*row[INTERVAL]),
        "by RP": DASH if pd.isna(row[RP[0]]) else _interval(*row[RP]),
        "level": f"{row['level']:.2f} %",
        "seeds": str(row["seeds"]),
        "classes": str(row["classes"]) if row["classes"] > 1 else DASH,
        "verdict": row["verdict"],
        "start": f"{row['start']:.1f}, then {row['gain']:+.1f} (above {row['gain_low']:+.1f})",
        **before,
    }


def _notes(rows: pd.DataFrame, verdicts: pd.DataFrame, scale: str, looks: Sequence[int]) -> str:
    rates = ", ".join(f"{100 * rate:g} % after {look}" for look, rate in zip(looks, RATES, strict=True))
    between = " Between two looks verdicts are for the time being." if {*verdicts["seeds"]} - {*looks} else ""
    halves = " Seeds train on two fixed halves of the classes; intervals do not cover other training classes."
    before = " *Rule before*: by one metric and the row's own variance; the rule now was chosen after these were seen."
    return (
        "In percent, after the last epoch, which nothing has chosen; ± is the standard deviation over all seeds. "
        "Differences in percent points, changed minus baseline, seed by seed and test class by test class, with an "
        "interval that is to hold for other seeds and other classes of their kind. How much seeds vary is told by all "
        "rows of a metric, data set and network together. *Seeds* are those by which a verdict was reached. Claims "
        f"about R@1 (P@1 is the same) are judged by R@1 and RP. Within {margin_of(PRIMARY[0]):g} points of zero "
        f"({margin_of(PRIMARY[1]):g} of RP) a difference is *small*. Verdicts on claims control the false-discovery "
        f"rate at {100 * sum(RATES):g} % ({rates} seeds).{between}{halves if looks == LOOKS_AT_HALVES else ''} "
        "*Start* is R@1 of the same network without training, pooled and compared as the baseline is (of a disturbed "
        "pair as its sides are without that; the less certain one is shown), then what training adds, and a bound that "
        "this exceeds with 95 %. Where the bound is not above zero, the row is *not tested* and still "
        f"counts.{before if 'before' in rows else ''} docs/verdicts.md has the "
        f"rule. Scale: {scale}."
    )


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
