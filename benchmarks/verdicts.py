"""How often verdicts on a family of claims are false, and how often a difference is found: simulated.

Run ``python benchmarks/verdicts.py``: it writes ``results/benchmarks/verdicts.csv`` and goes on where it was stopped.

A family has 40 claims on 70 comparisons. Two or three comparisons share a baseline; each model has effects of its own
of seeds, classes and their combination, by R@1 and RP. How much classes and combinations vary, and how the two metrics
correlate, is that of the comparisons of real birds in ``results/reference/birds/metrics``; how much seeds vary is set
by the scenario. Beside the rule by R@1 stand, of the same families, the second verdict by RP and the rule before, which
decides each comparison by R@1 with the variance over seeds that it shows by itself.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from zlib import crc32

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lookalike.base.files import replacing
from lookalike.workflow.report.by_class import class_means
from lookalike.workflow.report.statistics import claim as rule
from lookalike.workflow.report.statistics import decisions
from lookalike.workflow.report.statistics.claim import PRIMARY, SECOND, Claim, Quantifier, Row
from lookalike.workflow.report.statistics.crossed import Crossed, variances
from lookalike.workflow.report.statistics.verdict import Verdict

RESULTS = Path(__file__).parents[1] / "results"
MEASURED = RESULTS / "reference" / "birds"
# How many claims have so many rows and which quantifier: 40 claims on 70 rows.
CLAIMS = [(20, 1, "every"), (6, 2, "every"), (2, 4, "every"), (6, 3, "mean"), (6, 2, "some")]
FEW = [(3, 1, "every"), (1, 3, "every")]
METRICS = (PRIMARY, SECOND)
MARGINS = np.array([decisions.margin_of(metric) for metric in METRICS])
# What a difference of 1 point of R@1 comes to in RP: of one model scored twice, of two models.
BESIDE_RECALL = (0.35, 0.7)
CLASSES, QUERIES = 50, 59
TAILS = 3
BY_RECALL, BY_PRECISION, BEFORE = "R@1", "RP", "before, R@1"
DECIDED = {Verdict.HOLDS, Verdict.FAILS, Verdict.SMALL}


@dataclass(frozen=True)
class Scenario:
    """What is simulated.

    Attributes:
        seeds: trainings of each row.
        halves: whether seeds test on two halves of the classes in turn, so that there are twice as many.
        classes: that a seed is tested on.
        wild: share of comparisons whose seeds have a standard deviation of 2 points.
        calm: of the others, from and to, in points of R@1.
        claims: as `CLAIMS`.
        points: difference of a row of R@1 where there is one.
        true: share of claims whose rows all have it.
        mixed: share of those of which half have it.
        queries: pictures of a class that ask.
        heavy: whether effects of seeds and combinations have Student's tails of `TAILS` degrees of freedom.
    """

    seeds: int = 3
    halves: bool = False
    classes: int = CLASSES
    wild: float = 0.0
    calm: tuple[float, float] = (0.1, 0.5)
    claims: Sequence[tuple[int, int, str]] = ()
    points: float = 3.0
    true: float = 0.4
    mixed: float = 0.2
    queries: int = QUERIES
    heavy: bool = False


BASE = Scenario(claims=tuple(CLAIMS))
WILD = replace(BASE, wild=0.1)
SCENARIOS = {
    "seeds 0.1 to 0.5": BASE,
    "seeds 0.5": replace(BASE, calm=(0.5, 0.5)),
    "a tenth at 2": WILD,
    "a tenth at 2, nine claims in ten false": replace(WILD, true=0.1, mixed=0.0),
    "no difference": replace(WILD, points=0.0, seeds=10),
    "all at the margin": replace(WILD, points=2.0, true=1.0, mixed=0.0, seeds=10),
    "a tenth at 2, 6 trainings": replace(WILD, seeds=6),
    "a tenth at 2, 10 trainings": replace(WILD, seeds=10),
    "all at 2": replace(BASE, calm=(2.0, 2.0)),
    "all at 2, 6 trainings": replace(BASE, calm=(2.0, 2.0), seeds=6),
    "all at 2, 10 trainings": replace(BASE, calm=(2.0, 2.0), seeds=10),
    "all at 2, no difference": replace(BASE, calm=(2.0, 2.0), seeds=10, points=0.0),
    "heavy tails, seeds 0.5": replace(BASE, calm=(0.5, 0.5), heavy=True),
    "heavy tails, a tenth at 2": replace(WILD, heavy=True),
    "heavy tails, a tenth at 2, 10 trainings": replace(WILD, heavy=True, seeds=10),
    "heavy tails, a tenth at 2, no difference": replace(WILD, heavy=True, points=0.0, seeds=10),
    "heavy tails, all at 2, no difference": replace(BASE, calm=(2.0, 2.0), heavy=True, points=0.0, seeds=10),
    "halves, a tenth at 2, 4 trainings": replace(WILD, seeds=4, halves=True),
    "halves, a tenth at 2, 10 trainings": replace(WILD, seeds=10, halves=True),
    "4 claims on 6 comparisons, no difference": replace(WILD, claims=tuple(FEW), points=0.0, wild=0.15, seeds=10),
    "4 claims on 6 comparisons": replace(WILD, claims=tuple(FEW), wild=0.15),
    "11 pictures a class": replace(WILD, queries=11),
    "11 pictures a class, no difference": replace(WILD, queries=11, points=0.0),
    "11 pictures a class, 200 classes, 10 trainings": replace(WILD, queries=11, classes=200, seeds=10),
}


@dataclass(frozen=True)
class Spread:
    """Of a comparison that was measured.

    Attributes:
        of_classes: standard deviations of R@1 and RP, in points.
        of_both: of combinations of seeds and classes.
        classes_alike: correlation of the two metrics over classes; ``both_alike`` over combinations.
        twice: whether it is one model scored twice.
    """

    of_classes: NDArray[np.float64]
    of_both: NDArray[np.float64]
    classes_alike: float
    both_alike: float
    twice: bool


@cache
def measured_spreads() -> list[Spread]:
    """Of all comparisons of retrieval among the claims of real birds, at the last epoch."""
    claims = pd.read_csv(MEASURED / "claims.csv")
    claims = claims[(claims["direction"] != "different") & (claims["verdict"] != "not run")]
    kept = claims[~claims["metric"].str.startswith("train_")]
    found = []
    for changed, baseline in sorted(set(zip(kept["changed"], kept["baseline"], strict=True))):
        values, told = [], []
        for metric in METRICS:
            sides = [
                [
                    class_means(str(MEASURED / f"metrics/{side}/cub100/seed{seed}.json"), "last", metric)
                    for seed in range(3)
                ]
                for side in (changed, baseline)
            ]
            differences = np.array(
                [100 * (first["value"] - second["value"]) for first, second in zip(*sides, strict=True)]
            )
            own = variances(differences)
            of_both = own.of_both.variance
            told.append(
                (max(0.0, own.over_classes.variance - of_both) / own.over_classes.factor, of_both / own.of_both.factor)
            )
            values.append(differences)
        rest = [each - each.mean(axis=0) - each.mean(axis=1, keepdims=True) for each in values]
        found.append(
            Spread(
                *np.sqrt(np.array(told)).T,
                float(np.corrcoef(*(each.mean(axis=0) for each in values))[0, 1]),
                float(np.corrcoef(*(each.ravel() for each in rest))[0, 1]),
                changed == f"{baseline}_diml",
            )
        )
    return found


def drawn_family(
    scenario: Scenario, spreads: Sequence[Spread], rng: np.random.Generator
) -> dict[str, list[tuple[Claim, NDArray[np.float64]]]]:
    """By metric claims, each with the true differences of its rows in margins."""
    found: dict[str, list[tuple[Claim, NDArray[np.float64]]]] = {metric: [] for metric in METRICS}
    pairs = _drawn_pairs(scenario, spreads, rng)
    for claims_alike, rows, quantifier in scenario.claims:
        for _ in range(claims_alike):
            kind = rng.choice(3, p=[scenario.true, scenario.mixed, 1 - scenario.true - scenario.mixed])
            points = [scenario.points * (kind == 0 or (kind == 1 and row % 2 == 0)) for row in range(rows)]
            sign = rng.choice([1, -1], p=[0.8, 0.2])
            drawn = [next(pairs) for _ in points]
            beside = [BESIDE_RECALL[0 if twice else 1] for _, _, twice, _ in drawn]
            true = sign * np.array(points) * np.array([np.ones(rows), beside])
            for place, metric in enumerate(METRICS):
                own = [
                    Row(name, baseline, "birds", metric, Crossed(noise[place] + true[place, row]))
                    for row, (name, baseline, _, noise) in enumerate(drawn)
                ]
                found[metric].append((Claim(own, Quantifier(quantifier)), true[place] / MARGINS[place]))
    return found


def _drawn_pairs(
    scenario: Scenario, spreads: Sequence[Spread], rng: np.random.Generator
) -> Iterator[tuple[str, str, bool, NDArray[np.float64]]]:
    """Comparisons: names, whether it is one model scored twice, noise ``(metrics, seeds, classes)``."""
    classes = scenario.classes * (2 if scenario.halves else 1)
    for group in count():
        spread = spreads[rng.integers(len(spreads))]
        calm = rng.uniform(*scenario.calm) / np.sqrt(2)
        baseline = _drawn_model(scenario, spread, calm, rng)
        for row in range(rng.integers(2, 4)):
            of_seeds = np.sqrt(4 - calm**2) if rng.random() < scenario.wild else calm
            noise = _drawn_model(scenario, spread, of_seeds, rng) - baseline
            if scenario.halves:
                noise[:, ::2, : classes // 2] = noise[:, 1::2, classes // 2 :] = np.nan
            yield f"changed{group}.{row}", f"baseline{group}", spread.twice, noise


def _drawn_model(scenario: Scenario, spread: Spread, of_seeds: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Noise of a model: two of them make a comparison, so each has half of its variance."""
    seeds, classes = scenario.seeds, scenario.classes * (2 if scenario.halves else 1)
    # Seeds move RP as much less than R@1 as noise does.
    deviations = of_seeds * np.array([1.0, spread.of_both[1] / spread.of_both[0]])
    of_both = spread.of_both * np.sqrt(QUERIES / scenario.queries / 2)
    heavy = scenario.heavy
    return (
        deviations[:, None, None] * _alike(spread.classes_alike, (seeds, 1), rng, heavy)
        + spread.of_classes[:, None, None] / np.sqrt(2) * _alike(spread.classes_alike, (1, classes), rng)
        + of_both[:, None, None] * _alike(spread.both_alike, (seeds, classes), rng, heavy)
    )


def _alike(
    correlation: float, shape: tuple[int, int], rng: np.random.Generator, heavy: bool = False
) -> NDArray[np.float64]:
    """Numbers ``(metrics, *shape)`` of variance 1, normal or of heavy tails, that correlate between the two metrics."""
    size = 2, *shape
    first, second = rng.standard_t(TAILS, size) / np.sqrt(TAILS / (TAILS - 2)) if heavy else rng.normal(size=size)
    return np.stack([first, correlation * first + np.sqrt(1 - correlation**2) * second])


def is_true(verdict: Verdict, truth: NDArray[np.float64], quantifier: Quantifier) -> bool:
    """Whether a verdict is true of the differences of rows, in margins."""
    if quantifier == Quantifier.MEAN:
        truth, quantifier = truth.mean(keepdims=True), Quantifier.EVERY
    if quantifier == Quantifier.SOME:  # some row is higher: not every one is otherwise
        turned = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}
        return is_true(turned.get(verdict, verdict), -truth, Quantifier.EVERY)
    if verdict == Verdict.HOLDS:
        return bool((truth > 0).all())
    if verdict == Verdict.FAILS:
        return bool((truth < 0).any())
    return bool((truth > -1).all() and (truth < 1).any())


@dataclass(frozen=True)
class Outcome:
    """Verdicts on one family, with the truth: of claims by quantifier, and of rows."""

    claims: Sequence[tuple[Verdict, NDArray[np.float64], Quantifier]]
    rows: Sequence[tuple[Verdict, np.float64]]


def by_claims(family: Sequence[tuple[Claim, NDArray[np.float64]]], halves: bool) -> Outcome:
    """By the rule of claims."""
    claims, truths = zip(*family, strict=True)
    judged = rule.judge(claims, rule.LOOKS_AT_HALVES if halves else rule.LOOKS)
    of_rows = [pair for each, truth in zip(judged, truths, strict=True) for pair in zip(each.rows, truth, strict=True)]
    return Outcome(
        [(each.verdict, truth, claim.quantifier) for each, truth, claim in zip(judged, truths, claims, strict=True)],
        of_rows,
    )


def by_rows(family: Sequence[tuple[Claim, NDArray[np.float64]]]) -> Outcome:
    """By the rule before, which knows no claims."""
    words = {Verdict.HIGHER: Verdict.HOLDS, Verdict.LOWER: Verdict.FAILS}
    asked = [row.differences for claim, _ in family for row in claim.rows]
    found = [each.decision.verdict for each in decisions.decide(asked, [float(MARGINS[0])] * len(asked))]
    true = [row for _, truth in family for row in truth]
    return Outcome([], [(words.get(verdict, verdict), row) for verdict, row in zip(found, true, strict=True)])


def simulated(name: str, draws: int) -> list[dict[str, object]]:
    """What became of drawn families, by each rule."""
    scenario, spreads = SCENARIOS[name], measured_spreads()
    outcomes: dict[str, list[Outcome]] = {BY_RECALL: [], BY_PRECISION: [], BEFORE: []}
    for draw in range(draws):
        rng = np.random.default_rng([crc32(name.encode()), draw])
        families = drawn_family(scenario, spreads, rng)
        outcomes[BY_RECALL].append(by_claims(families[PRIMARY], scenario.halves))
        outcomes[BY_PRECISION].append(by_claims(families[SECOND], scenario.halves))
        if not scenario.halves:  # of which it knows nothing
            outcomes[BEFORE].append(by_rows(families[PRIMARY]))
    return [
        {"scenario": name, "rule": told, "draws": draws} | _summary(found) for told, found in outcomes.items() if found
    ]


def _summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Shares: of the false among the decided, a family each, with the standard error; of the found among the true."""
    claims = [
        [(verdict, is_true(verdict, truth, quantifier)) for verdict, truth, quantifier in each.claims]
        for each in outcomes
    ]
    rows = [
        [(verdict, is_true(verdict, np.array([truth]), Quantifier.EVERY)) for verdict, truth in each.rows]
        for each in outcomes
    ]
    of_claims, of_rows = ([_false(each) for each in found] for found in (claims, rows))
    said, asked = Counter[str](), Counter[str]()
    for each in outcomes:
        told = [(v, np.array([t]), Quantifier.EVERY, "rows") for v, t in each.rows]
        told += [(v, t, q, "one row" if len(t) == 1 else q.value) for v, t, q in each.claims]
        for verdict, truth, quantifier, kind in told:
            for right in (Verdict.HOLDS, Verdict.FAILS):
                if is_true(right, truth, quantifier) and not is_true(Verdict.SMALL, truth, quantifier):
                    asked[kind] += 1
                    said[kind] += verdict == right
    kinds = ("rows", "one row", *(each.value for each in Quantifier))
    return {
        "false_claims": float(np.mean(of_claims)) if any(claims) else float("nan"),
        "error_of_false_claims": float(np.std(of_claims) / np.sqrt(len(outcomes))) if any(claims) else float("nan"),
        "false_rows": float(np.mean(of_rows)),
        **{
            f"found_{kind.replace(' ', '_')}": said[kind] / asked[kind] if asked[kind] else float("nan")
            for kind in kinds
        },
        "decided_rows": float(np.mean([np.mean([verdict in DECIDED for verdict, _ in each]) for each in rows])),
    }


def _false(told: Sequence[tuple[Verdict, bool]]) -> float:
    decided = [true for verdict, true in told if verdict in DECIDED]
    return 1 - sum(decided) / len(decided) if decided else 0.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--draws", type=int, default=400, help="families of each scenario")
    options.add_argument("--output", type=Path, default=RESULTS / "benchmarks" / "verdicts.csv")
    options.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="SCENARIO")
    arguments = options.parse_args()
    done = pd.read_csv(arguments.output) if arguments.output.exists() else pd.DataFrame({"scenario": [], "draws": []})
    for name in arguments.only:
        if (done[done["scenario"] == name]["draws"] >= arguments.draws).any():
            continue
        found = pd.DataFrame(simulated(name, arguments.draws))
        done = pd.concat([done[done["scenario"] != name], found]) if len(done) else found
        done = done.sort_values("scenario", key=lambda names: names.map([*SCENARIOS].index), kind="stable")
        with replacing(arguments.output) as path:
            done.to_csv(path, index=False, float_format="%.4f")
        print(found.to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
