"""The papers' claims in words, held against measured runs: the claims, their runs and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
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
from lookalike.workflow.plan.on_data import RCA, START
from lookalike.workflow.plan.pairs import Compared, besides
from lookalike.workflow.plan.rates import COMPARED
from lookalike.workflow.plan.scales import measured_metrics
from lookalike.workflow.report.by_class import SAME
from lookalike.workflow.report.differences import differences, values
from lookalike.workflow.report.gains import Gain, Trained, gains, over_rca
from lookalike.workflow.report.statistics import claim as rule
from lookalike.workflow.report.statistics.claim import (
    LOOKS,
    LOOKS_AT_HALVES,
    PRIMARY,
    RATES,
    SECOND,
    Direction,
    Judged,
    Quantifier,
    Row,
    judge,
)
from lookalike.workflow.report.statistics.crossed import Estimate, deviations
from lookalike.workflow.report.statistics.decisions import margin_of
from lookalike.workflow.report.statistics.verdict import OF_CLAIMS, Verdict, counted
from lookalike.workflow.report.tables.layout import DASH
from lookalike.workflow.report.tolerance import OF_RP
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
ROW = ["claim", "metric", "direction", "published", "dataset", "changed", "baseline", "besides", "decides"]
BEFORE = ["claim", "dataset", "changed", "baseline"]  # by which a file of the rule before names a row
SIDES = ("changed", "baseline")
OVER_RCA = ["rca", "over_rca", "over_rca_low", "over_rca_high", "over_rca_verdict"]  # of each side
READ = (*SIDES, "learned", "started", "mapped")
INTERVAL = ["difference", "low", "high"]
PREFIXES = ("", OF_RP)  # of the columns of both verdicts: by the claim's metric, and by RP beside R@1
OF_ROW = [*INTERVAL, "seeds_error", "seeds_freedom", "level", "seeds", "verdict"]
OF_CLAIM = ["verdict", "error", "seeds", *INTERVAL]
CLAIM = ["claim", "quantifier", "regardless", *(f"{prefix}{name}" for prefix in PREFIXES for name in OF_CLAIM)]
UNKNOWN = Estimate(np.nan, (), 0, 0)
OF_ROWS = {"every": "in every row", "mean": "in the mean of rows", "some": "in some rows"}
Stated = Mapping[str, Claim]  # entries of `FILE` by name


@dataclass(frozen=True)
class Comparison:
    """The two recipes that a claim is held against on a data set, for one seed."""

    claim: str
    metric: str
    published: str
    dataset: str
    network: str
    changed: str
    baseline: str
    learners: tuple[str, ...]
    """Recipes that have to have learned: the baseline, or what both sides are without their disturbance; none if these
    were not trained, so that nobody knows.
    """
    seed: int
    besides: str = ""
    """Keys in which the baseline, as the paper's own does, differs from the changed recipe besides what is tested."""
    has_rca: bool = False
    """Whether both sides are about retrieval by one vector at the start, which RCA can map."""
    decides: bool = True
    """Whether its claim follows from it: not from a pair as in the paper where a clean one stands."""

    @property
    def pool(self) -> tuple[str, str]:
        """Whose comparisons tell of each other's seeds."""
        return self.dataset, self.network

    def trained(self, recipe: str) -> Trained:
        """A recipe on this data set."""
        return Trained(self.dataset, self.network, recipe)

    def read(self, side: str) -> list[tuple[str, str]]:
        """Kind of file and recipe of each file of a side.

        ``changed`` and ``baseline`` are the metrics or the attention that the claim is about. ``learned`` and
        ``started`` are metrics of the learners after and before training. ``mapped`` are those of both sides before any
        training but after RCA.
        """
        if side == "mapped":
            return [("metrics", f"{RCA}{getattr(self, each)}") for each in SIDES if self.has_rca]
        if side in ("changed", "baseline"):
            return [("attribution" if self.metric in OF_ATTENTION else "metrics", getattr(self, side))]
        return [("metrics", f"{START if side == 'started' else ''}{recipe}") for recipe in self.learners]


class Claims:
    """Claims of one call, and the files of their runs' results.

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
        self._asked = claim_runs(evidence.plan, self.stated)

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
        return sorted({run.dataset for run in self._asked})

    @cached_property
    def _runs(self) -> list[Comparison]:
        """All that claims are held against, without rows that are not run."""
        unknown = self._wanting(["learned", "started"])
        runs = [run for run in self._asked if replace(run, seed=0) not in self._left]
        return [replace(run, learners=()) if replace(run, seed=0) in unknown else run for run in runs]

    @cached_property
    def _left(self) -> list[Comparison]:
        """Rows, each as of seed 0, that are not run."""
        return self._wanting(SIDES)

    def _wanting(self, sides: Sequence[str]) -> list[Comparison]:
        """Rows, each as of seed 0, a side of which wants a training that is not there, in a call that is to say so."""
        wants = self._evidence.wants_training
        left = (
            run
            for run in self._asked
            for side in sides
            for kind, recipe in run.read(side)
            if wants(recipe, run.dataset, run.seed, kind)
        )
        return list(dict.fromkeys(replace(run, seed=0) for run in left))

    def not_run(self, wildcards: Any) -> list[Tree]:
        """Rows that are said to be not run, as `runs`."""
        return [asdict(run) for run in self._left]

    def models(self, wildcards: Any) -> list[tuple[str, int]]:
        """Recipe and seed of all models of a data set that claims or the comparison speak of."""
        plan, dataset = self._evidence.plan, wildcards.dataset
        recipes = {
            recipe for run in self._runs if run.dataset == dataset for side in READ for _, recipe in run.read(side)
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
        for side in READ:
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
    """One entry per claim, data set of this scale that has its metric, pair and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two.
        claims: as `read_claims` gives them.

    Raises:
        ValueError: for a pair that cannot run at this scale, or a metric that one of its recipes does not measure.
    """
    held = [
        (name, claim, published, dataset.name)
        for name, claim in claims.items()
        for published in claim.datasets
        for dataset in plan.datasets.values()
        if dataset.stands_for == published and claim.metric in {*OF_ATTENTION, *measured_metrics([dataset.about])}
    ]
    comparisons = []
    for name, claim, published, dataset in held:
        pairs = []
        for pair in claim.pairs:
            learners = tuple(pair.undisturbed) or (pair.baseline,)
            for recipe in (pair.changed, pair.baseline, *learners, *(f"{START}{learner}" for learner in learners)):
                plan.check_run(recipe, dataset)
            for recipe in (pair.changed, pair.baseline):
                _check_measured(plan.settings(recipe, dataset), claim.metric, recipe, f"{FILE}, {name}.metric")
            network = plan.settings(pair.baseline, dataset).train.backbone.name
            sides = pair.changed, pair.baseline
            own = ", ".join(besides(plan, Compared(*sides, dataset, claim.under_test, pair.as_in_paper)))
            poolings = {plan.settings(recipe, dataset).train.embedding.pooling for recipe in sides}
            has_rca = claim.metric not in OF_ATTENTION and "stripes" not in poolings
            pairs.append(Comparison(name, claim.metric, published, dataset, network, *sides, learners, 0, own, has_rca))
        stand_beside = not all(pair.besides for pair in pairs)
        comparisons += [
            replace(pair, seed=seed, decides=not (pair.besides and stand_beside))
            for pair in pairs
            for seed in plan.several_seeds
        ]
    return comparisons


def _check_measured(settings: Recipe, metric: str, recipe: str, place: str) -> None:
    method = settings.train.method.name
    if metric in OF_ATTENTION and not METHODS[method].has_attention:
        allowed = " or ".join(name for name, each in METHODS.items() if each.has_attention)
        raise ValueError(f"{place}: {metric} needs train.method {allowed}; recipe {recipe} trains {method}")
    if metric.startswith(ON_TRAINING) and not settings.embed.training_pictures:
        raise ValueError(f"{place}: {metric} needs embed.training_pictures, which recipe {recipe} does not set")


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
    mapped: Sequence[str],
    output: str,
    verdicts: str,
    not_run: Sequence[Tree] = (),
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
        mapped: of changed and baseline before any training but after RCA, where a run has them.
        output: CSV to write, with every row; ``.md`` beside it is for readers.
        verdicts: CSV to write, with every claim.
        not_run: rows that nothing was measured of, as ``runs``, each once: it says so, and still counts.
        before: CSV with what the rule before said of rows that are older than this rule, if there are any.

    Raises:
        ValueError: for a file without the metric that is claimed about, sides that were not tested on the same
            pictures, and a file that its classes contradict.
    """
    stated = {name: checked(Claim, claim, name) for name, claim in claims.items()}
    rows = list(measured(runs, changed, baseline, zip(learned, started, strict=True)))
    looks = LOOKS_AT_HALVES if crossed else LOOKS
    left = [Comparison(**{**run, "learners": tuple(run["learners"])}) for run in not_run]
    of_rows, of_claims = judged(stated, rows, looks, left)
    of_rows, of_claims = with_left(stated, with_rca(of_rows, runs, changed, baseline, mapped), of_claims, left)
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
    files: dict[Trained, dict[int, tuple[str, str]]] = {}
    for run in compared:
        for name in run.learners:
            files.setdefault(run.trained(name), {})[run.seed] = next(models)
    found = gains(files)
    for run, group in groupby(zip(compared, changed, baseline, strict=True), lambda side: replace(side[0], seed=0)):
        of_seed, first, second = zip(*group, strict=True)
        seeds = [each.seed for each in of_seed]
        if run.metric == ON_OBJECT and not all(ON_OBJECT in read_json(file)[REPORTED] for file in (*first, *second)):
            continue
        told = (found[run.trained(name)] for name in run.learners)
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


def markdown(stated: Stated, rows: pd.DataFrame, verdicts: pd.DataFrame, *, scale: str, looks: Sequence[int]) -> str:
    """All claims for readers, from the tables of `judged`: counts of verdicts, a line and then a table per claim."""
    verdicts = verdicts.set_index("claim")
    lines = [_claim_line(name, claim, rows, verdicts) for name, claim in stated.items()]
    parts = ["# What the papers claim, and what was measured here", _notes(rows, verdicts, scale, looks)]
    parts += [_table(_counts(stated, verdicts)), _table(lines)]
    for name, claim in stated.items():
        own = [_row_line(row) for _, row in rows[rows["claim"] == name].iterrows()]
        asked = f"{claim.says} ({claim.place}.) Claimed: {_claimed(claim)}."
        told = f"**{verdicts['verdict'][name].capitalize()}.** " if name in verdicts.index else ""
        parts += [f"## {name}", f"{told}{asked}", _table(own) if own else "Not tested: no data."]
    return "\n\n".join(parts) + "\n"


def _table(lines: Sequence[Mapping[str, str]]) -> str:
    return pd.DataFrame(lines).fillna(DASH).to_markdown(index=False, disable_numparse=True)


def _counts(stated: Stated, verdicts: pd.DataFrame) -> list[dict[str, str]]:
    """Number of claims with each verdict: those that either sign fulfils apart, with and without the starts, by RP."""
    kinds = {"of one sign": Direction.DIFFERENT.__ne__, "that either sign fulfils": Direction.DIFFERENT.__eq__}
    return [
        {"claims": f"{kind}{words}"} | {each: str(count) for each, count in counted(own, OF_CLAIMS).items()}
        for kind, is_of in kinds.items()
        for column, words in (("verdict", ""), ("regardless", ", whatever has learned"), (f"{OF_RP}verdict", ", by RP"))
        for own in [verdicts[column][[is_of(stated[name].direction) for name in verdicts.index]].dropna()]
    ]


def _claimed(claim: Claim) -> str:
    return f"{claim.metric} {claim.direction}, {OF_ROWS[claim.quantifier]}"


def _claim_line(name: str, claim: Claim, rows: pd.DataFrame, verdicts: pd.DataFrame) -> dict[str, str]:
    own = [row for _, row in rows[(rows["claim"] == name) & rows["decides"].astype(bool)].iterrows()]
    said, by_rp, difference = verdicts.loc[name, ["verdict", f"{OF_RP}verdict", "difference"]] if own else [None] * 3
    return {
        "claim": name,
        "verdict": str(said or "no data"),
        "by RP": by_rp if isinstance(by_rp, str) else DASH,
        "claimed": _claimed(claim),
        "place": claim.place,
        "mean difference": f"{difference:+.1f}" if isinstance(difference, float) and np.isfinite(difference) else DASH,
        **{f"rows: {each}": str(count) for each, count in counted([row["verdict"] for row in own], OF_CLAIMS).items()},
    }


def _row_line(row: pd.Series) -> dict[str, str]:
    own = f" (as in the paper, with its own {row['besides']})" if isinstance(row["besides"], str) else ""
    stand_in = "" if row["dataset"] == row["published"] else f" ({row['dataset']})"
    before = {"rule before": row["before"] if isinstance(row["before"], str) else DASH} if "before" in row else {}
    named = {
        "data set": f"{row['published']}{stand_in}",
        "changed": row["changed"],
        "baseline": f"{row['baseline']}{own}",
    }
    if row["verdict"] == Verdict.NOT_RUN:
        return {**named, "verdict": row["verdict"], **before}
    return {
        **named,
        **{f"{side} mean": f"{row[f'{side}_mean']:.1f} ± {row[f'{side}_deviation']:.1f}" for side in SIDES},
        **_told_cells(row, "", ""),
        **_told_cells(row, OF_RP, " by RP"),
        "classes": f"{row['classes']:.0f}" if row["classes"] > 1 else DASH,
        "start": "unknown"
        if pd.isna(row["start"])
        else f"{row['start']:.1f}, then {row['gain']:+.1f} (above {row['gain_low']:+.1f})",
        "over RCA": _over_rca(row),
        **before,
    }


def _over_rca(row: pd.Series) -> str:
    """Gains of training over both sides' starts after RCA, with their verdicts."""
    if pd.isna(row["changed_rca"]):
        return DASH
    said = [f"{row[f'{side}_over_rca']:+.1f} ({row[f'{side}_over_rca_verdict']})" for side in SIDES]
    return f"{said[0]}, baseline {said[1]}"


def _beside_rca(rows: pd.DataFrame) -> str:
    """Numbers of trained recipes above and below their starts after RCA, in a sentence."""
    names = ["dataset", "recipe", "verdict"]
    sides = [rows[["dataset", side, f"{side}_over_rca_verdict"]].set_axis(names, axis="columns") for side in SIDES]
    trained = pd.concat(sides).dropna().drop_duplicates()
    if trained.empty:
        return ""
    words = {Verdict.HIGHER: "above", Verdict.LOWER: "below", Verdict.SMALL: "within the margin of"}
    counts = [f"{(trained['verdict'] == verdict).sum()} are decidedly {word} it" for verdict, word in words.items()]
    return (
        " *Over RCA*: R@1 over that of the untrained start after relevant component analysis of the training classes, "
        f"which nothing trains. Of {len(trained)} trained recipes {', '.join(counts)}, and "
        f"{(trained['verdict'] == Verdict.UNDECIDED).sum()} are open."
    )


def _told_cells(row: pd.Series, prefix: str, by: str) -> dict[str, str]:
    own = row[[f"{prefix}{name}" for name in OF_ROW]].set_axis(OF_ROW)
    shown = [DASH] * 4
    if not pd.isna(own["difference"]):
        shown = [_interval(*own[INTERVAL]), f"{own['level']:.2f} %", f"{own['seeds']:.0f}", own["verdict"]]
    return {f"{name}{by}": cell for name, cell in zip(("difference", "level", "seeds", "verdict"), shown, strict=True)}


def _notes(rows: pd.DataFrame, verdicts: pd.DataFrame, scale: str, looks: Sequence[int]) -> str:
    rates = ", ".join(f"{100 * rate:g} % after {look}" for look, rate in zip(looks, RATES, strict=True))
    between = " Between two looks verdicts are for the time being." if {*verdicts["seeds"].dropna()} - {*looks} else ""
    halves = " Seeds train on two fixed halves of the classes; intervals do not cover other training classes."
    before = " *Rule before*: by one metric and the row's own variance; the rule now was chosen after these were seen."
    wanting = " A row that is *not run* wants trainings that nobody has made; it says nothing and still counts."
    left = wanting if Verdict.NOT_RUN in {*rows["verdict"]} else ""
    if "start" in rows and rows["start"][rows["verdict"] != Verdict.NOT_RUN].isna().any():
        left += " Where the start is *unknown* nothing says whether it learned, and the row is judged."
    return (
        "In percent, after the last epoch, which nothing has chosen; ± is the standard deviation over all seeds. "
        "Differences in percent points, changed minus baseline, seed by seed and test class by test class, with an "
        "interval that is to hold for other seeds and other classes of their kind. How much seeds vary is told by all "
        "rows of a metric, data set and network together. *Seeds* are those by which a verdict was reached. Claims "
        "about R@1 (P@1 is the same) are judged by it. Their verdict by RP stands beside and decides nothing of the "
        f"first. Within {margin_of(PRIMARY):g} points of zero ({margin_of(SECOND):g} of RP) a difference is *small*. "
        f"Verdicts on claims control the false-discovery rate at {100 * sum(RATES):g} % ({rates} seeds): of those "
        f"about R@1, of those by RP, and of those about other numbers.{between}"
        f"{halves if looks == LOOKS_AT_HALVES else ''} A pair *as in the paper* beside a clean one is judged by "
        "itself, and decides nothing of its claim. "
        "*Start* is R@1 of the same network without training, pooled and compared as the baseline is (of a disturbed "
        "pair as its sides are without that; the less certain one is shown), then what training adds, and a bound that "
        "this exceeds with 95 %. Where the bound is not above zero, the row is *not tested* and still "
        f"counts.{left}{_beside_rca(rows)}{before if 'before' in rows else ''} docs/verdicts.md has the "
        f"rule. Scale: {scale}."
    )


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
