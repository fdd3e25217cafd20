"""Rates of trunk and head, chosen for each kind of recipe on classes held out of the training half.

Methods differ in the rates that they need, the papers' own by a factor of 7, so that one rate for all favours some.
Recipes of the same method and loss are of one kind. Each kind is trained with every pair of the scale's ``rates.grid``
on the same classes, with seeds that no table reports; the pair with the best MAP@R on the held-out classes lies over
its recipes. The trials and the choices are data: ``params/rates/<scale>.csv``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from lookalike.paths import project_root
from lookalike.plan.recipes import part_of
from lookalike.settings.layers import Layer, Tree, merge
from lookalike.settings.recipes import Train
from lookalike.settings.scales import RatePair, RateTrials

if TYPE_CHECKING:
    from lookalike.plan.plan import Plan

USUAL = "cub"  # the published data set on whose stand-in kinds are tried that run there
METRIC = "MAP@R"
PARTS = ("trunk", "head")
COLUMNS = ("method", "loss", "recipe", "dataset", *PARTS, "seeds", METRIC, "chosen")


class Kind(NamedTuple):
    """What recipes have in common that need the same rates."""

    method: str
    loss: str


class Trial(NamedTuple):
    """One pair of rates, tried on the first recipe of its kind."""

    kind: Kind
    recipe: str
    dataset: str
    number: int  # of the pair in the grid


def kind_of(train: Train) -> Kind | None:
    """Kind of a recipe, ``None`` for one that learns nothing."""
    return Kind(train.method.name, train.loss.name) if train.loss else None


def rates_file(scale: str) -> Path:
    """File with the trials and choices of a scale."""
    return project_root() / "params" / "rates" / f"{scale}.csv"


def chosen_rates(scale: str) -> dict[Kind, dict[str, float]]:
    """Rates by kind, ``{"trunk": ..., "head": ...}``; none for a scale without a file.

    Raises:
        ValueError: for a file that is empty, lacks columns, holds something else than numbers, or chooses twice; naming
            it.
    """
    path = rates_file(scale)
    if not path.is_file():
        return {}
    trials = pd.read_csv(path) if path.stat().st_size else pd.DataFrame()
    if missing := [column for column in COLUMNS if column not in trials]:
        raise ValueError(f"{path}: no column {missing[0]!r}; the target `rates` makes the file anew")
    for part in PARTS:
        wrong = trials[~(pd.to_numeric(trials[part], errors="coerce") > 0)]
        if len(wrong):
            raise ValueError(f"{path}, line {wrong.index[0] + 2}: {part} {wrong.iloc[0][part]} is no rate above 0")
    chosen = trials[trials["chosen"] == "yes"]
    twice = chosen[chosen.duplicated(["method", "loss"])]
    if len(twice):
        raise ValueError(
            f"{path}, line {twice.index[0] + 2}: a second choice for {twice.iloc[0]['method']} with "
            f"{twice.iloc[0]['loss']}, one is right"
        )
    return {
        Kind(row["method"], row["loss"]): {part: float(row[part]) for part in PARTS}
        for row in chosen.to_dict("records")
    }


def rates_layers(train: Tree, chosen: Mapping[Kind, Mapping[str, float]], scale: str) -> list[Layer]:
    """What lies over a section ``train`` of the rates chosen for its kind, nothing where none were.

    A kind that was not tried takes those of plain metric learning with its loss, and without these keeps its own.
    """
    method, loss = (str(part_of(train, part).get("name", "")) for part in ("method", "loss"))
    rates = chosen.get(Kind(method, loss)) or chosen.get(Kind("embedder", loss))
    origin = f"params/rates/{scale}.csv"
    return [Layer(origin, {"train": {"optimiser": {"lr": dict(rates)}}})] if rates else []


def rates_note(scale: str, kinds: Iterable[Kind], chosen: Mapping[Kind, Mapping[str, float]]) -> str:
    """What a table of some kinds says of rates that were chosen."""
    methods = {kind.method: None for kind in kinds if kind not in chosen and Kind("embedder", kind.loss) in chosen}
    borrowed = f" Where {' or '.join(map(repr, methods))} was not tried with a loss it has the rates of the loss alone."
    return (
        "Rates of trunk and head: for each method and loss the pair with the best MAP@R on classes held out of the "
        f"training half, of the same pairs for all (params/rates/{scale}.csv).{borrowed * bool(methods)}"
    )


def trials(plan: Plan) -> list[Trial]:
    """All trials of a plan's scale, kind by kind in the order of its tables, whichever of them the call builds."""
    return [
        Trial(kind, *first, number)
        for kind, first in _first_runs(plan).items()
        for number in range(len(_trials(plan).grid))
    ]


def trial_settings(plan: Plan, recipe: str, dataset: str, number: int) -> Tree:
    """Section ``train`` of a trial: the recipe's own at the scale, a pair of rates and the budget of trials.

    Raises:
        ValueError: for a number beyond the grid, or a scale without one.
    """
    rates = _trials(plan)
    if not 0 <= number < len(rates.grid):
        raise ValueError(f"{plan.scale_file}, rates.grid has pairs 0 to {len(rates.grid) - 1}, not {number}")
    train = plan.deciding(recipe, dataset, "train")["train"]
    budget = {"budget": {"patience": None, "collapse": None, "metrics": ["R@1", METRIC]}}
    return merge(merge(merge(train, rates.train), budget), {"optimiser": {"lr": rates.grid[number].dump()}})


def trial_seeds(plan: Plan) -> list[int]:
    """Seeds of each trial."""
    return _trials(plan).seeds


def choose(tried: Sequence[Trial], scores: Sequence[float], grid: Sequence[RatePair], seeds: int) -> pd.DataFrame:
    """All trials with their scores, and ``chosen: yes`` where a kind scored best; of equals the first.

    Args:
        tried: as `trials` gives them.
        scores: MAP@R of each, mean over seeds.
        grid: the pairs of rates.
        seeds: number of seeds behind a score.
    """
    rows = [
        {**trial.kind._asdict(), "recipe": trial.recipe, "dataset": trial.dataset}
        | grid[trial.number].dump()
        | {"seeds": seeds, METRIC: score}
        for trial, score in zip(tried, scores, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=[column for column in COLUMNS if column != "chosen"])
    best = frame.groupby(["method", "loss"], sort=False)[METRIC].idxmax()
    return frame.assign(chosen=["yes" if row in set(best) else "" for row in frame.index])


def _trials(plan: Plan) -> RateTrials:
    if plan.rates is None:
        raise ValueError(f"{plan.scale_file}: has no key rates; its rates are those of the recipes and of the scale")
    return plan.rates


def _first_runs(plan: Plan) -> dict[Kind, tuple[str, str]]:
    """By kind the first recipe of the scale's tables, on the stand-in for `USUAL` where any of its kind runs there."""
    first: dict[Kind, tuple[str, str]] = {}
    runs = list(_trained_runs(plan))
    for usual in (True, False):
        for kind, recipe, dataset in runs:
            if not usual or plan.datasets[dataset].stands_for == USUAL:
                first.setdefault(kind, (recipe, dataset))
    return {kind: first[kind] for kind, _, _ in runs}


def _trained_runs(plan: Plan) -> Iterator[tuple[Kind, str, str]]:
    for table in plan.tables_of_scale:
        for recipe, dataset in plan.runs_of(table)[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
            trained_on = plan.training_dataset(recipe, dataset)
            if (kind := kind_of(plan.settings(recipe, trained_on).train)) is not None:
                yield kind, recipe, trained_on
