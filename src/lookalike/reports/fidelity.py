"""What each choice between paper and released code changes, and the document that lists all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from lookalike.plan.fidelity import REASONS, Trial, choices, papers, trials
from lookalike.plan.trials import USUAL
from lookalike.settings.layers import Tree, canonical
from lookalike.statistics.pairs import paired_difference

METRICS = ("R@1", "MAP@R")
RUN = ("recipe", "unchanged", "dataset", "published")
COLUMNS = ["paper", "option", "level", *RUN, "metric", "mean", "mean_unchanged", "difference", "low", "high", "n"]
DASH = "–"

_INTRODUCTION = """\
# Fidelity to paper and released code

The papers and their released code disagree, and both leave things open. All such points that we know of stand here,
with what we take. Where both choices make sense the point is an option, set by the key of a recipe that is named;
`fidelity: paper` or `fidelity: released` in a recipe sets all options of its paper at once. Without it, or with
`fidelity: recommended`, our choices hold. Where a paper is silent its level falls back to ours, and so does that of
the code. Misprints are listed but are no options. The code of similarity attention was never released, so `released`
is refused there.

*Change at {scale}* is the trial minus the unchanged recipe at the scale `{scale}`, in percent points: the mean over n
paired seeds, with a confidence interval of 95 %, at the epoch with the best R@1. One choice is tried at a time, on the
data set that stands for CUB; where it changes nothing there, or has values per data set, on those that are named, at
most two. *No effect* means that the compared numbers are equal, *not run* that there is none, and *set by {scale}* that
the scale lays its own values over the ones to be tried. What `mini`, a small network on drawn pictures, changes says
which points matter there; it is no estimate for the papers' networks.

Made by `snakemake --cores all fidelity` from `params/fidelity` and the runs that it starts."""


def fidelity_cells(runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """What the trials change: one row per trial, data set and metric, in the order of the runs.

    Args:
        runs: rows of `lookalike.plan.trials.trial_runs`, each with the metrics of both recipes, as fractions, in
            ``metrics`` and ``metrics_unchanged``.

    Returns:
        The columns `COLUMNS`: means of both recipes and their paired difference with its interval, in percent.
    """
    tried = {trial.name: trial for trial in trials()}
    rows = []
    for key, group in groupby(runs, key=lambda run: tuple(run[name] for name in RUN)):
        seeds, trial = list(group), tried[key[0]]
        for metric in _metrics(trial):
            first, second = ([100 * run[part][metric] for run in seeds] for part in ("metrics", "metrics_unchanged"))
            difference = paired_difference(first, second)
            means = (sum(values) / len(values) for values in (first, second))
            place = (trial.paper, trial.option, trial.level, *key, metric)
            rows.append((*place, *means, difference.mean, difference.low, difference.high, difference.n))
    return pd.DataFrame(rows, columns=COLUMNS)


def document(cells: pd.DataFrame | None = None, *, overruled: Collection[str] = (), scale: str = "mini") -> str:
    """``docs/fidelity.md``: per paper its options with what each choice changes, then what is fixed.

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
            for name, option in content["options"].items()
            for row in _option_rows(option, [trial for trial in tried if trial.option == name], changes)
        ]
        fixed = [{**_said(point), "because": point["because"]} for point in content["fixed"]]
        parts += [f"## {content['title']}", f"Tried on the recipe `{content['recipe']}` unless another one is named."]
        parts += [_markdown(options), "Without an option:", _markdown(fixed)]
    parts += ["## Why there is no option", "\n".join(f"- *{name}*: {reason}." for name, reason in REASONS.items())]
    return "\n\n".join(parts) + "\n"


def _metrics(trial: Trial) -> tuple[str, ...]:
    """RP as well where R is what is tried."""
    return (*METRICS, "RP") if "count_query_in_r" in trial.settings.get("evaluate", {}) else METRICS


def _option_rows(
    option: Tree, tried: Sequence[Trial], changes: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, str]]:
    """A row per choice that is not ours; what was said stands in the first one."""
    recipe = option.get("recipe")
    said = {**_said(option), "option": f"`{tried[0].option}`" + (f" on `{recipe}`" if recipe else "")}
    for trial in tried:
        yield {**said, "level": f"{trial.level}: {', '.join(_leaves(trial.settings))}", **changes[trial.name]}
        said = dict.fromkeys(said, "")


def _said(point: Tree) -> dict[str, str]:
    return {
        "point": point["point"],
        "paper": point["paper"] or DASH,
        "released": point["released"] or DASH,
        "ours": point["recommended"],
    }


def _leaves(settings: Mapping[str, Any]) -> Iterator[str]:
    """Tree as ``key: value``, the key without the sections it lies in."""
    for key, value in settings.items():
        if key == "per_dataset":
            yield from (f"{leaf} on {name}" for name, own in value.items() for leaf in _leaves(own))
        elif isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield f"`{key}: {value if isinstance(value, str) else canonical(value)}`"


def _change(trial: Trial, cells: pd.DataFrame | None, overruled: Collection[str], scale: str) -> str:
    """What a trial changed, data set by data set."""
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
