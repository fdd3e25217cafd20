"""Effect of each choice between paper and released code: the trials that run it, and the document that lists all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookalike.base.files import read_json, replacing, write_text
from lookalike.metrics.names import REPORTED
from lookalike.workflow.plan.fidelity import REASONS, Trial, choices, papers, trials
from lookalike.workflow.report.statistics.pairs import of_halves, paired_difference
from lookalike.workflow.report.tables.layout import DASH
from lookalike.workflow.settings.fidelity import Fixed, Option
from lookalike.workflow.settings.layers import Tree, canonical

if TYPE_CHECKING:
    from lookalike.workflow.plan.evidence import Evidence
    from lookalike.workflow.plan.plan import Plan
    from lookalike.workflow.plan.scales import Dataset

USUAL = "cub"  # the published data set that a choice is tried on unless it changes nothing there
METRICS = ("R@1", "MAP@R")
RUN = ("recipe", "unchanged", "dataset", "published")
COLUMNS = ["paper", "option", "level", *RUN, "metric", "mean", "mean_unchanged", "difference", "low", "high", "n"]

_INTRODUCTION = """\
# Fidelity to paper and released code

The papers and their released code disagree, and both leave things open. All such points that we know of stand here,
with what we take. Where both choices make sense the point is an option, set by the key of a recipe that is named;
`fidelity: paper` or `fidelity: released` in a recipe sets all options of its paper at once. Without it, or with
`fidelity: recommended`, our choices hold. Where a paper is silent its level falls back to ours, and so does that of
the code. Misprints are listed but are no options. The code of similarity attention was never released, so `released`
is refused there.

*Change at {scale}* is the trial minus the unchanged recipe at the scale `{scale}`, in percent points: the mean over n
paired seeds, with a confidence interval of 95 %, after the last epoch. One choice is tried at a time, on the
data set that stands for CUB; where it changes nothing there, or has values per data set, on those that are named, at
most two. *No effect* means that the compared numbers are equal, *not run* that there is none, and *set by {scale}* that
the scale lays its own values over the ones to be tried. What `mini`, a small network on drawn pictures, changes says
which points matter there; it is no estimate for the papers' networks.

Made by `snakemake --cores all fidelity` from `params/fidelity` and the runs that it starts."""


class Trials:
    """The trials of a call, and the files with the metrics of them and of the recipes that they change.

    Args:
        evidence: of the call.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._plan = evidence, evidence.plan

    def metrics(self, column: str) -> Callable[[Any], list[str]]:
        """Files with the metrics of the trials, ``recipe``, or of the recipes they change, ``unchanged``, in order."""

        def files(wildcards: Any) -> list[str]:
            runs = trial_runs(self._plan)[[column, "dataset", "seed"]]
            return [self._evidence.inputs.stored("metrics", *run) for run in runs.itertuples(index=False)]

        return files

    def runs(self, wildcards: Any, input: Any) -> list[Tree]:
        """Rows of `trial_runs`; refuses results of older code."""
        runs = [{str(name): value for name, value in row.items()} for row in trial_runs(self._plan).to_dict("records")]
        for column, files in (("recipe", input.metrics), ("unchanged", input.metrics_unchanged)):
            self._evidence.check_results(files, [(run[column], run["dataset"], run["seed"]) for run in runs])
        return runs

    def overruled(self, wildcards: Any = None) -> list[str]:
        """Names of the trials of which nothing is left at the scale."""
        return overruled_trials(self._plan)

    def stated(self, wildcards: Any = None) -> dict[str, Tree]:
        """Choices of all papers, as their files state them."""
        return {paper: choices(paper).dump() for paper in papers()}


def trial_runs(plan: Plan) -> pd.DataFrame:
    """One row per trial, data set and seed: ``recipe, unchanged, dataset, published, seed``.

    A trial runs on the data set that stands for `USUAL`. One that changes nothing there, or has values of its own per
    data set, runs on those whose settings it changes, at most two. Trials that the scale overrules are left out.

    Args:
        plan: what the call runs.

    Raises:
        ValueError: for a trial that cannot run on a data set.
    """
    rows = [
        {"recipe": trial.name, "unchanged": trial.recipe}
        | {"dataset": dataset.name, "published": dataset.stands_for or "", "seed": seed}
        | {"half": plan.half_of(dataset.name, seed)}
        for trial in trials()
        if not trial.is_overruled(plan.overlay)
        for dataset in _concerned(plan, trial)
        for seed in plan.several_seeds
    ]
    frame = pd.DataFrame(rows, columns=["recipe", "unchanged", "dataset", "published", "seed", "half"])
    for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
        plan.check_run(recipe, dataset)
    return frame


def overruled_trials(plan: Plan) -> list[str]:
    """Names of the trials of which nothing is left at the scale."""
    return [trial.name for trial in trials() if trial.is_overruled(plan.overlay)]


def _concerned(plan: Plan, trial: Trial) -> list[Dataset]:
    standing = [dataset for dataset in plan.datasets.values() if dataset.stands_for] or list(plan.datasets.values())
    usual = next((dataset for dataset in standing if dataset.stands_for == USUAL), standing[0])
    changed = [
        dataset
        for dataset in standing
        if plan.settings(trial.name, dataset.name) != plan.settings(trial.recipe, dataset.name)
    ]
    if not changed or (usual in changed and not trial.settings.per_dataset):
        return [usual]
    return changed[:2]


@dataclass(frozen=True)
class Tried:
    """A row of `trial_runs`, with the metrics of both recipes as fractions."""

    recipe: str
    unchanged: str
    dataset: str
    published: str
    seed: int
    metrics: Mapping[str, float]
    metrics_unchanged: Mapping[str, float]
    half: str = ""


def fidelity(
    runs: Sequence[Tree],
    *,
    scale: str,
    overruled: Collection[str],
    metrics: Sequence[str],
    metrics_unchanged: Sequence[str],
    output: str,
    published: str,
) -> None:
    """Write all differences as CSV and the document as Markdown.

    Args:
        runs: rows of `trial_runs`.
        scale: scale at which they ran.
        overruled: names of the trials that the scale leaves nothing of.
        metrics: JSON files of the trials, in the order of the runs.
        metrics_unchanged: JSON files of the unchanged recipes, in the same order.
        output: CSV to write; ``.md`` lies beside it.
        published: a copy of the document, empty for none.
    """
    files = zip(metrics, metrics_unchanged, strict=True)
    scored = [
        Tried(**run, metrics=read_json(changed)[REPORTED], metrics_unchanged=read_json(unchanged)[REPORTED])
        for run, (changed, unchanged) in zip(runs, files, strict=True)
    ]
    cells = fidelity_cells(scored)
    text = document(cells, overruled=overruled, scale=scale)
    with replacing(output) as path:
        cells.to_csv(path, index=False, float_format="%.4f")
    for target in filter(None, (str(Path(output).with_suffix(".md")), published)):
        write_text(target, text)


def fidelity_cells(runs: Sequence[Tried]) -> pd.DataFrame:
    """Changes by the trials: one row per trial, data set and metric, in the order of the runs.

    Returns:
        The columns `COLUMNS`: means of both recipes and their paired difference with its interval, in percent.
    """
    tried = {trial.name: trial for trial in trials()}
    rows = []
    for key, group in groupby(runs, key=lambda run: tuple(getattr(run, name) for name in RUN)):
        seeds, trial = list(group), tried[key[0]]
        for metric in _metrics(trial):
            first = [100 * run.metrics[metric] for run in seeds]
            second = [100 * run.metrics_unchanged[metric] for run in seeds]
            halves = [run.half for run in seeds]
            difference = paired_difference(first, second, halves)
            means = (of_halves(values, halves)[0] for values in (first, second))
            place = (trial.paper, trial.option, trial.level, *key, metric)
            rows.append((*place, *means, difference.mean, difference.low, difference.high, difference.n))
    return pd.DataFrame(rows, columns=COLUMNS)


def document(cells: pd.DataFrame | None = None, *, overruled: Collection[str] = (), scale: str = "mini") -> str:
    """``docs/fidelity.md``: per paper its options with the change by each choice, then its fixed points.

    Args:
        cells: as `fidelity_cells` returns them; ``None`` before anything ran.
        overruled: names of the trials that the scale leaves nothing of.
        scale: at which was measured.
    """
    tried = trials()
    changes = {trial.name: {f"change at {scale}": _change(trial, cells, overruled, scale)} for trial in tried}
    parts = [_INTRODUCTION.format(scale=scale)]
    for paper in papers():
        content = choices(paper)
        options = [
            row
            for name, option in content.options.items()
            for row in _option_rows(option, [trial for trial in tried if trial.option == name], changes)
        ]
        fixed = [{**_said(point), "because": point.because} for point in content.fixed]
        parts += [f"## {content.title}", f"Tried on the recipe `{content.recipe}` unless another one is named."]
        parts += [_markdown(options), "Without an option:", _markdown(fixed)]
    parts += ["## Why there is no option", "\n".join(f"- *{name}*: {reason}." for name, reason in REASONS.items())]
    return "\n\n".join(parts) + "\n"


def _metrics(trial: Trial) -> tuple[str, ...]:
    """Metrics of a trial, RP among them where R is tried."""
    return (*METRICS, "RP") if "count_query_in_r" in trial.settings.evaluate else METRICS


def _option_rows(
    option: Option, tried: Sequence[Trial], changes: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, str]]:
    """A row per choice that is not ours; the words on the option stand in the first one."""
    on = f" on `{option.recipe}`" if option.recipe else ""
    said = {**_said(option), "option": f"`{tried[0].option}`{on}"}
    for trial in tried:
        yield {**said, "level": f"{trial.level}: {', '.join(_leaves(trial.settings.dump()))}", **changes[trial.name]}
        said = dict.fromkeys(said, "")


def _said(point: Option | Fixed) -> dict[str, str]:
    return {
        "point": point.point,
        "paper": point.paper or DASH,
        "released": point.released or DASH,
        "ours": point.recommended,
    }


def _leaves(settings: Tree) -> Iterator[str]:
    """Tree as ``key: value``, the key without the sections it lies in."""
    for key, value in settings.items():
        if key == "per_dataset":
            yield from (f"{leaf} on {name}" for name, own in value.items() for leaf in _leaves(own))
        elif isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield f"`{key}: {value if isinstance(value, str) else canonical(value)}`"


def _change(trial: Trial, cells: pd.DataFrame | None, overruled: Collection[str], scale: str) -> str:
    """Change by a trial, data set by data set, or the reason why there is none."""
    if trial.name in overruled:
        return f"set by {scale}"
    own = pd.DataFrame(columns=COLUMNS) if cells is None else cells[cells["recipe"] == trial.name]
    if own.empty:
        return "not run"
    if (own[["difference", "low", "high"]] == 0).all(axis=None):
        return "no effect"
    return "; ".join(_differences(part) for _, part in own.groupby("dataset", sort=False))


def _differences(cells: pd.DataFrame) -> str:
    """All metrics on one data set, which is named unless it is the usual one."""
    first = cells.iloc[0]
    place = "" if first["published"] == USUAL else f"on {first['dataset']} "
    changes = [
        f"{cell['metric']} {cell['difference']:+.1f} ({cell['low']:+.1f} to {cell['high']:+.1f})"
        for cell in cells.to_dict("records")
    ]
    return f"{place}{', '.join(changes)}, n = {first['n']}"


def _markdown(rows: list[dict[str, str]]) -> str:
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in lines)
