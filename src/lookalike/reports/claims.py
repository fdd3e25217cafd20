"""What the papers claim in words, held against measured runs: which claims and runs, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lookalike.checks import require_known
from lookalike.files import read_json, replacing, write_text
from lookalike.methods import METHODS
from lookalike.metrics.names import OF_ATTENTION, ON_OBJECT, ON_TRAINING, of_data_sets
from lookalike.reports.by_class import class_means
from lookalike.settings.datasets import Dataset
from lookalike.settings.files import dataset_names, read, read_entries
from lookalike.settings.layers import Tree
from lookalike.settings.pages import Claim
from lookalike.settings.recipes import Recipe
from lookalike.statistics.crossed import Crossed, deviations
from lookalike.statistics.decisions import LOOKS, MARGIN, MARGINS, RATES, decide, margin_of
from lookalike.statistics.verdict import OF_CLAIMS, Verdict, counted
from lookalike.tables.layout import DASH

if TYPE_CHECKING:
    from lookalike.plan.evidence import Evidence
    from lookalike.plan.plan import Plan

FILE = "params/claims.yaml"
SIDES = ("changed", "baseline")
DECIDED, BESIDE = "last", "best"
ROUNDED = 1e-5  # classes are written with six digits
CELL = ["claim", "metric", "direction", "published", "dataset", "changed", "baseline"]
MEASURED = [
    *("changed_mean", "changed_deviation", "baseline_mean", "baseline_deviation"),
    *("difference", "low", "high", "level", "seeds", "classes", "verdict", "difference_of_all"),
    *("deviation_of_seeds", "deviation_of_classes", "deviation_of_both"),
]
# The same by the best epoch, as the papers report it.
BEST = {name: f"best_{name}" for name in ("difference", "low", "high", "level", "seeds", "verdict")}
Stated = Mapping[str, Mapping[str, Any]]  # entries of `FILE` by name


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
        """Files with what one side of all compared pairs has reached, ``changed`` or ``baseline``, in order."""

        def file(run: Mapping[str, Any]) -> str:
            kind = "attribution" if run["metric"] in OF_ATTENTION else "metrics"
            return self._evidence.inputs.stored(kind, run[side], run["dataset"], run["seed"])

        return lambda wildcards: [file(run) for run in self._runs]

    def runs(self, wildcards: Any, input: Any) -> list[dict[str, Any]]:
        """The runs that claims are held against, without their files; refuses results of older code."""
        for side, files in (("changed", input.changed), ("baseline", input.baseline)):
            self._evidence.check_results(files, [(run[side], run["dataset"]) for run in self._runs])
        return self._runs


def read_claims(plan: Plan) -> dict[str, Tree]:
    """All claims by name, those without data at this scale too.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown recipe or published data set.
    """
    claims = {name: claim.dump() for name, claim in read_entries(FILE, Claim).items()}
    datasets = dataset_names()
    of_retrieval = of_data_sets(read(f"params/datasets/{dataset}.yaml", Dataset).dump() for dataset in datasets)
    for name, claim in claims.items():
        require_known(f"{FILE}, {name}.metric", claim["metric"], {*of_retrieval, *OF_ATTENTION})
        for dataset in claim["datasets"]:
            require_known(f"{FILE}, {name}.datasets", dataset, datasets)
        for place, pair in enumerate(claim["pairs"]):
            for side in SIDES:
                require_known(f"{FILE}, {name}.pairs.{place}.{side}", pair[side], plan.recipe_names)
    return claims


def claim_runs(plan: Plan, claims: Stated) -> list[dict[str, Any]]:
    """One entry per claim, data set of this scale, pair and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two.
        claims: as `read_claims` gives them.

    Returns:
        Entries with ``claim, metric, published, dataset, changed, baseline, seed``.

    Raises:
        ValueError: for a pair that cannot run at this scale, or a metric that one of its recipes does not measure.
    """
    comparisons = [
        {"claim": name, "metric": claim["metric"], "published": published, "dataset": dataset.name, **pair}
        for name, claim in claims.items()
        for published in claim["datasets"]
        for dataset in plan.datasets.values()
        if dataset.stands_for == published
        for pair in claim["pairs"]
    ]
    for comparison in comparisons:
        for side in SIDES:
            recipe, dataset = comparison[side], comparison["dataset"]
            plan.check_run(recipe, dataset)
            _check_measured(plan.settings(recipe, dataset), comparison, recipe)
    return [{**comparison, "seed": seed} for comparison in comparisons for seed in plan.several_seeds]


def _check_measured(settings: Recipe, comparison: Mapping[str, Any], recipe: str) -> None:
    metric, method = comparison["metric"], settings.train.method.name
    place = f"{FILE}, {comparison['claim']}.metric"
    if metric in OF_ATTENTION and not METHODS[method].has_attention:
        allowed = " or ".join(name for name, each in METHODS.items() if each.has_attention)
        raise ValueError(f"{place}: {metric} needs train.method {allowed}; recipe {recipe} trains {method}")
    if metric.startswith(ON_TRAINING) and not settings.embed.training_pictures:
        raise ValueError(f"{place}: {metric} needs embed.training_pictures, which recipe {recipe} does not set")


def claims(
    claims: Stated,
    runs: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    chosen_on: str,
    changed: Sequence[str],
    baseline: Sequence[str],
    output: str,
) -> None:
    """Write the verdict on every claim as CSV and Markdown.

    Args:
        claims: entries of ``params/claims.yaml`` by name.
        runs: as `claim_runs` gives them.
        scale: what the scale calls itself.
        chosen_on: what the best epoch of a training is best on.
        changed: JSON files with what the changed recipes reached, in the order of the runs; beside those of retrieval
            lies what their classes reached. Where the pictures have no masks they do not tell what lies on the object,
            and what is claimed of it is not tested.
        baseline: JSON files of the baselines' metrics, in the same order.
        output: path without extension; ``.csv`` holds every comparison, ``.md`` is for readers.

    Raises:
        ValueError: for a file without the metric that is claimed about, sides that were not tested on the same
            pictures, and a file that its classes contradict.
    """
    sides = [side for side in zip(runs, changed, baseline, strict=True) if _is_told(*side)]
    cells = claim_cells(claims, *(_measured(sides, checkpoint) for checkpoint in (DECIDED, BESIDE)))
    with replacing(f"{output}.csv") as path:
        cells.to_csv(path, index=False, float_format="%.4f")
    shown = pd.read_csv(f"{output}.csv")  # rounded as there, so that the two say the same
    seeds = sorted({run["seed"] for run in runs})
    write_text(f"{output}.md", markdown(claims, shown, seeds=seeds, chosen_on=chosen_on, scale=scale))


def _measured(sides: Sequence[tuple[Mapping[str, Any], str, str]], checkpoint: str) -> pd.DataFrame:
    """What both sides of each run reached, as `claim_cells` takes it."""
    keys = ["claim", "metric", "published", "dataset", "changed", "baseline", "seed"]
    rows = [
        {
            **run,
            "changed_value": _value(first, checkpoint, run["metric"]),
            "baseline_value": _value(second, checkpoint, run["metric"]),
            "classes": _of_classes(first, second, checkpoint, run["metric"]),
        }
        for run, first, second in sides
    ]
    return pd.DataFrame(rows, columns=[*keys, "changed_value", "baseline_value", "classes"])


def _of_classes(changed: str, baseline: str, checkpoint: str, metric: str) -> pd.DataFrame | None:
    """By class the difference and the number of queries, ``None`` for a metric that is not told by class."""
    first, second = (class_means(path, checkpoint, metric) for path in (changed, baseline))
    if first is None or second is None:
        return None
    difference = first["value"] - second["value"]
    if difference.isna().any() or not first["queries"].equals(second["queries"]):
        raise ValueError(f"{changed} and {baseline} were not tested on the same pictures; remove what is of older data")
    for path, side in ((changed, first), (baseline, second)):
        of_all, told = float(np.average(side["value"], weights=side["queries"])), _value(path, checkpoint, metric)
        if abs(of_all - told) > ROUNDED:
            raise ValueError(
                f"{path} says {metric} {told:.4f}, its classes come to {of_all:.4f}; remove it and the file of the "
                "classes, and the next call measures them anew"
            )
    return pd.DataFrame({"difference": difference, "queries": first["queries"]})


def _is_told(run: Mapping[str, Any], *files: str) -> bool:
    return run["metric"] != ON_OBJECT or all(ON_OBJECT in read_json(file)[DECIDED] for file in files)


def _value(path: str, checkpoint: str, metric: str) -> float:
    values = read_json(path)[checkpoint]
    if metric not in values:
        raise ValueError(f"{path} holds no {metric}; it holds {', '.join(sorted(values))}")
    return float(values[metric])


def verdict(direction: str, reached: Verdict) -> Verdict:
    """Whether what a difference comes to is what was claimed.

    Args:
        direction: claimed of the changed recipe: ``higher``, ``lower`` or ``different``.
        reached: verdict on the difference, changed minus baseline.

    Returns:
        ``holds`` for the claimed side (for ``different``: either), ``does not hold`` for the other side or where no
        seed differs at all, ``small`` for a difference below the margin whose sign is open, else ``undecided``.
    """
    if reached in (Verdict.UNDECIDED, Verdict.SMALL):
        return reached
    wanted = (Verdict.HIGHER, Verdict.LOWER) if direction == "different" else (Verdict(direction),)
    return Verdict.HOLDS if reached in wanted else Verdict.FAILS


def claim_cells(claims: Stated, runs: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """One row per claim, data set and pair of recipes, decided together: by the last epoch, which nothing has chosen.

    Args:
        claims: entries of ``params/claims.yaml`` by name.
        runs: per run ``claim, metric, published, dataset, changed, baseline, seed``, what was measured as fractions,
            ``changed_value`` and ``baseline_value``, and ``classes``: what the changed recipe reached more than the
            baseline on each test class, indexed by the class with the columns ``difference`` (a fraction) and
            ``queries``, or ``None`` where classes are not told apart. All of the last epoch.
        best: the same of the best epoch, for the papers' way beside it.

    Returns:
        Columns ``claim, metric, direction, published, dataset, changed, baseline, changed_mean, changed_deviation,
        baseline_mean, baseline_deviation, difference, low, high, level, seeds, classes, verdict, difference_of_all,
        deviation_of_seeds, deviation_of_classes, deviation_of_both``, in percent and percent points, ``level`` in
        percent; and of the best epoch ``best_difference, best_low, best_high, best_level, best_seeds, best_verdict``,
        which is decided as a family of its own. All are of the ``seeds`` by which a look has decided, but
        ``difference_of_all`` and the standard deviations, which are of all runs' seeds; ``deviation_of_...`` are those
        of single differences, as `lookalike.statistics.crossed.deviations` estimates them.
    """
    cells, beside = _cells(claims, runs), _cells(claims, best)
    return cells.merge(beside[[*CELL, *BEST]].rename(columns=BEST), on=CELL, validate="one_to_one")


def _cells(claims: Stated, runs: pd.DataFrame) -> pd.DataFrame:
    runs = runs.assign(direction=[claims[name]["direction"] for name in runs["claim"]])
    cells = [(dict(zip(CELL, key, strict=True)), own) for key, own in runs.groupby(CELL, sort=False)]
    rows = [cell | measured for (cell, _), measured in zip(cells, _decided([own for _, own in cells]), strict=True)]
    return pd.DataFrame(rows, columns=[*CELL, *MEASURED])


def claim_summaries(claims: Stated, cells: pd.DataFrame) -> pd.DataFrame:
    """One row per claim: how its single cells came out, and the mean of their differences.

    Args:
        claims: as for `claim_cells`.
        cells: as it gives them.

    Returns:
        Columns ``claim``, ``difference``, the mean of its cells' in percent points (NaN for a claim without a run at
        this scale), and the numbers of cells per verdict of `OF_CLAIMS`.
    """
    rows: list[dict[str, Any]] = []
    for name in claims:
        own = cells[cells["claim"] == name]
        rows.append({"claim": name, "difference": own["difference"].mean()} | counted(own["verdict"], OF_CLAIMS))
    return pd.DataFrame(rows)


def markdown(claims: Stated, cells: pd.DataFrame, *, seeds: Sequence[int], chosen_on: str, scale: str) -> str:
    """All claims for readers: a line per claim, then a table per claim.

    Args:
        claims: as for `claim_cells`.
        cells: as it gives them.
        seeds: of the runs.
        chosen_on: what the best epoch is best on.
        scale: what the scale calls itself.
    """
    summaries = claim_summaries(claims, cells)
    parts = ["# What the papers claim, and what was measured here", _notes(seeds, len(cells), chosen_on, scale)]
    lines = [_summary_line(claims[row["claim"]], row) for _, row in summaries.iterrows()]
    parts.append(pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True))
    for name, claim in claims.items():
        own = [_cell_line(row) for _, row in cells[cells["claim"] == name].iterrows()]
        asked = f"{claim['says']} ({claim['place']}.) Claimed: {claim['metric']} {claim['direction']}."
        table = pd.DataFrame(own).to_markdown(index=False, disable_numparse=True) if own else "Not tested: no data."
        parts += [f"## {name}", asked, table]
    return "\n\n".join(parts) + "\n"


def _decided(cells: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """Numbers and verdict of each comparison, from its runs.

    Raises:
        ValueError: for comparisons of different numbers of seeds, as a look takes as many of each.
    """
    if len({len(own) for own in cells}) > 1:
        few, many = (
            f"{own['changed'].iloc[0]} on {own['dataset'].iloc[0]} has {len(own)} seeds"
            for own in (min(cells, key=len), max(cells, key=len))
        )
        raise ValueError(f"{few}, {many}; a look takes as many of each comparison")
    comparisons = [_differences(own.sort_values("seed")) for own in cells]
    reached = decide(comparisons, [margin_of(str(own["metric"].iloc[0])) for own in cells])
    rows = []
    for own, compared, found in zip(cells, comparisons, reached, strict=True):
        of_seeds, of_classes, of_both = deviations(compared.differences, compared.weights)
        taken = own.sort_values("seed").head(found.estimate.seeds)
        rows.append(
            {
                **{f"{side}_mean": 100 * taken[f"{side}_value"].mean() for side in SIDES},
                **{f"{side}_deviation": 100 * own[f"{side}_value"].std() for side in SIDES},
                "difference": found.estimate.mean,
                "low": found.decision.low,
                "high": found.decision.high,
                "level": 100 * found.decision.level,
                "seeds": found.estimate.seeds,
                "classes": compared.differences.shape[1],
                "verdict": verdict(str(own["direction"].iloc[0]), found.decision.verdict),
                "difference_of_all": compared.estimate().mean,
                "deviation_of_seeds": of_seeds,
                "deviation_of_classes": of_classes,
                "deviation_of_both": of_both,
            }
        )
    return rows


def _differences(runs: pd.DataFrame) -> Crossed:
    """Differences in percent points, and weights, of a comparison's runs; one class for all of them, without a weight,
    where classes are not told apart.

    Raises:
        ValueError: for runs that were not tested on the same classes, or of which only some tell them apart.
    """
    first = runs["classes"].iloc[0]
    untold = [seed for seed, each in zip(runs["seed"], runs["classes"], strict=True) if each is None]
    if 0 < len(untold) < len(runs):
        raise ValueError(
            f"{runs['changed'].iloc[0]} on {runs['dataset'].iloc[0]}: seed {untold[0]} has no numbers by class, others "
            "have; remove its metrics, and the next call measures them anew"
        )
    if len(runs) == 1 or untold:  # a single seed says nothing of others
        return Crossed(100 * (runs["changed_value"] - runs["baseline_value"]).to_numpy()[:, None])
    for seed, each in zip(runs["seed"], runs["classes"], strict=True):
        if not (each.index.equals(first.index) and each["queries"].equals(first["queries"])):
            raise ValueError(
                f"{runs['changed'].iloc[0]} on {runs['dataset'].iloc[0]}: seed {seed} was not tested on the classes of "
                f"seed {runs['seed'].iloc[0]}; remove what is of older data"
            )
    of_seeds = np.stack([each["difference"].to_numpy() for each in runs["classes"]])
    return Crossed(100 * of_seeds, first["queries"].to_numpy(float))


def _notes(seeds: Sequence[int], cells: int, chosen_on: str, scale: str) -> str:
    listed = ", ".join(map(str, seeds))
    looks = ", ".join(f"{rate:.0%} after {look}" for look, rate in zip(LOOKS, RATES, strict=True))
    return (
        "In percent, after the last epoch, which nothing has chosen; beside it the difference at the epoch with the "
        f"best R@1 on {chosen_on}. Differences in percent points, changed minus "
        f"baseline, seed by seed (seeds {listed or DASH}) and test class by test class; ± is the standard deviation "
        "over all of these seeds, means are of those that a verdict took (in brackets the difference of all, where "
        "these are more). The interval is to hold for "
        "other seeds and other classes of their kind: two-way random effects, Student's quantile for each part "
        "(Banerjee); over seeds alone where classes are not told apart. A claim *holds* where the interval lies on the "
        "claimed side of zero; it *does not hold* where it lies on the other side or no seed differs; the difference "
        f"is *small* where the interval lies within {MARGIN:g} points of zero ({_margins()}); else it is *undecided*. "
        f"Of the verdicts on the {cells} comparisons, small ones among them, at most one in twenty is false in "
        f"expectation ({looks} seeds): "
        "the more are decided, the narrower the intervals; what a look has decided stays as it was then. The best "
        f"epochs are decided likewise, as a family of their own.{_between_looks(len(seeds))} "
        f"Scale: {scale}."
    )


def _between_looks(seeds: int) -> str:
    if seeds in (1, *LOOKS):  # a single one decides nothing
        return ""
    return f" {seeds} seeds are none of the {', '.join(map(str, LOOKS))} of a look: what they decide is provisional."


def _margins() -> str:
    return ", ".join(f"{metric} {margin:g}" for metric, margin in MARGINS.items())


def _summary_line(claim: Mapping[str, Any], row: pd.Series) -> dict[str, str]:
    tested = not pd.isna(row["difference"])
    return {
        "claim": row["claim"],
        "place": claim["place"],
        "claimed": f"{claim['metric']} {claim['direction']}",
        "mean difference": f"{row['difference']:+.1f}" if tested else "not tested: no data",
        **{each: str(row[each]) for each in OF_CLAIMS},
    }


def _cell_line(row: pd.Series) -> dict[str, str]:
    stand_in = "" if row["dataset"] == row["published"] else f" ({row['dataset']})"
    at_best = _interval(*row[["best_difference", "best_low", "best_high"]])
    return {
        "data set": f"{row['published']}{stand_in}",
        "changed": row["changed"],
        "baseline": row["baseline"],
        **{f"{side} mean": _spread(*row[[f"{side}_mean", f"{side}_deviation"]]) for side in SIDES},
        "difference": _interval(*row[["difference", "low", "high"]]) + _of_all(row),
        "level": f"{row['level']:.2f} %",
        "seeds": str(row["seeds"]),
        "classes": str(row["classes"]) if row["classes"] > 1 else DASH,
        "verdict": row["verdict"],
        "at the best epoch": f"{at_best}, {row['best_seeds']} seeds: {row['best_verdict']}",
    }


def _of_all(row: pd.Series) -> str:
    return "" if row["difference_of_all"] == row["difference"] else f" ({row['difference_of_all']:+.1f})"


def _spread(mean: float, deviation: float) -> str:
    return f"{mean:.1f}" if pd.isna(deviation) else f"{mean:.1f} ± {deviation:.1f}"


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
