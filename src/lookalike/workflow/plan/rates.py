"""Rates found for each kind of recipe on classes held out of the training half.

Methods differ in the rates that they need, the papers' own by a factor of 7, so that one rate for all favours some.
What needs the same rates is a kind. The target `rates` searches those of each kind by successive halving
(`lookalike.workflow.plan.halving`), with seeds that no table reports, by MAP@R on the held-out classes after the last
epoch. What it finds lies over the recipes of the kind. Trials and choices are data, ``params/rates/<scale>.csv``, where
kinds may be told apart by method and loss alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from lookalike.base.files import read_cells, replacing
from lookalike.base.paths import project_root
from lookalike.workflow.plan.halving import OWN, Asked, Candidate, Choice, Design, Scores, chosen
from lookalike.workflow.plan.recipes import part_of
from lookalike.workflow.plan.tables import tables_of_papers
from lookalike.workflow.plan.terms import has_part
from lookalike.workflow.settings.files import read_entries
from lookalike.workflow.settings.layers import Layer, Tree, merge
from lookalike.workflow.settings.pages import Claim, Figure
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.settings.scales import RateTrials

if TYPE_CHECKING:
    from lookalike.workflow.plan.plan import Plan

USUAL = "cub"  # the published data set on whose stand-in kinds are tried that run there
METRIC = "MAP@R"
PARTS = ("trunk", "head")
COLUMNS = ("method", "loss", "recipe", "dataset", *PARTS, "seeds", METRIC, "chosen")  # of every file
# Options by which a loss or a method weights its terms.
OF_LEVELS = ("level_weights", "final_weight")
WEIGHTS = ("lam", "gamma", "contrastive_weight", *OF_LEVELS)
COMPARED = "methods"  # table that stands beside those of the papers
SWEPT = "lambda"  # axis along which three kinds are tried
EDGE = "edge"  # in place of `yes`: better rates may lie beyond those that were tried


class Kind(NamedTuple):
    """Common traits of recipes that need the same rates, in words; trials of method and loss alone lack the rest."""

    method: str
    loss: str
    weights: str = ""  # of the loss's terms and of the regulariser
    pooling: str = ""
    initialisation: str = ""
    head_form: str = ""  # `head` is its rate
    size: str = ""  # of an embedding


# What a trial has of a column that its file lacks.
ABSENT = {**Kind._field_defaults, "own": "1", "half": ""}


class Tried(NamedTuple):
    """A kind whose rates are searched, on the first recipe of the kind."""

    kind: Kind
    recipe: str
    dataset: str
    half: str  # of the training classes
    has_own: bool  # whether it learns anything at the rate of proxies
    twin: Kind | None  # to whose pair ties go: its plain twin, or what of plain metric learning is most like that


def kind_of(train: Train) -> Kind | None:
    """Kind of a recipe, ``None`` for one that learns nothing."""
    return _kind(train.dump()) if train.loss else None


def twin_of(train: Train) -> Kind | None:
    """Kind of plain metric learning that a kind adds its method or regulariser to, ``None`` for one that adds neither.

    Level weights are AVSL's, whose twin has no levels.
    """
    if train.loss is None:
        return None
    stated = train.dump()
    loss = {name: value for name, value in stated["loss"].items() if name not in OF_LEVELS}
    twin = _kind({**stated, "method": {"name": "embedder"}, "loss": loss, "regulariser": None})
    return None if twin == _kind(stated) else twin


def rates_file(scale: str) -> Path:
    """File with the trials and choices of a scale."""
    return project_root() / "params" / "rates" / f"{scale}.csv"


def chosen_rates(scale: str, half: str = "") -> dict[Kind, Candidate]:
    """Rates by kind; none for a scale without a file.

    A file may lack the columns of `Kind` after method and loss, and ``own`` and ``half``.

    Args:
        scale: as `rates_file` takes it.
        half: column ``half`` of the trials: the half of the training classes that they trained and tested on.

    Raises:
        ValueError: for a file that is empty, lacks columns, holds something else than numbers, or chooses twice; naming
            it.
    """
    path = rates_file(scale)
    if not path.is_file():
        return {}
    header, rows = read_cells(path)
    trials = pd.DataFrame(rows, columns=header, dtype=str)
    if missing := [column for column in COLUMNS if column not in trials]:
        raise ValueError(f"{path}: no column {missing[0]!r}; the target `rates` makes the file anew")
    trials = trials.assign(**{name: value for name, value in ABSENT.items() if name not in trials})
    for part in Candidate._fields:
        wrong = trials[~(pd.to_numeric(trials[part], errors="coerce") > 0)]
        if len(wrong):
            raise ValueError(f"{path}, line {wrong.index[0] + 2}: {part} {wrong.iloc[0][part]} is no rate above 0")
    chosen = trials[trials["chosen"].isin(["yes", EDGE]) & (trials["half"] == half)]
    twice = chosen[chosen.duplicated([*Kind._fields])]
    if len(twice):
        raise ValueError(
            f"{path}, line {twice.index[0] + 2}: a second choice for {twice.iloc[0]['method']} with "
            f"{twice.iloc[0]['loss']}, one is right"
        )
    return {
        Kind(*(row[field] for field in Kind._fields)): Candidate(*(float(row[part]) for part in Candidate._fields))
        for row in chosen.to_dict("records")
    }


def tried_as(kind: Kind, chosen: Collection[Kind]) -> Kind | None:
    """The kind whose rates a kind takes, of those that rates were chosen for.

    Itself, or the one of its method and loss that has most in common with it, of equals that with the nearest weights,
    then the first. A method that was not tried with the loss takes those of plain metric learning with it; without
    these a kind keeps its own.
    """
    for method in (kind.method, "embedder"):
        if alike := [each for each in chosen if each[:2] == (method, kind.loss)]:
            return max(alike, key=lambda each: (sum(map(str.__eq__, each, kind)), -_apart(each.weights, kind.weights)))
    return None


def _apart(first: str, second: str) -> float:
    """Sum of the distances between weights: numbers count by their difference, any other difference as one."""
    one, other = (dict(each.rpartition(" ")[::2] for each in words.split(", ")) for words in (first, second))
    apart = 0.0
    for name in one.keys() | other.keys():
        try:
            apart += abs(float(one[name]) - float(other[name]))
        except (KeyError, ValueError):
            apart += one.get(name) != other.get(name)
    return apart


def rates_layers(train: Tree, chosen: Mapping[Kind, Candidate], scale: str) -> list[Layer]:
    """Layer of the rates chosen for the kind of a section ``train``, nothing where none were."""
    if (kind := tried_as(_kind(train), chosen)) is None:
        return []
    own = part_of(part_of(train, "optimiser"), "lr").get("proxies")
    origin = f"params/rates/{scale}.csv, {', '.join(filter(None, kind))}"
    return [Layer(origin, {"train": {"optimiser": {"lr": _laid(chosen[kind], own)}}})]


def _laid(candidate: Candidate, own: Any) -> dict[str, float]:
    """Rates of a candidate, to lie over an optimiser's ``lr``, given the recipe's own rate of proxies."""
    rates = {"trunk": candidate.trunk, "head": candidate.head}
    return rates if candidate.own == 1 or own is None else rates | {"proxies": own * candidate.own}


def _kind(train: Tree) -> Kind:
    """Kind of a section ``train`` that learns; parts of another form than they must have are left to the check."""
    method, loss, embedding, projector, regulariser = (
        part_of(train, part) for part in ("method", "loss", "embedding", "projector", "regulariser")
    )
    weights = [f"{name} {_worded(part[name])}" for part in (loss, method) for name in WEIGHTS if name in part]
    if regulariser:
        weights.append(f"regulariser {' '.join(_worded(value) for _, value in sorted(regulariser.items()))}")
    heads = [f"{_worded(embedding['parts'])} parts"] if embedding.get("parts") else []
    heads += [f"projector {_worded(projector.get('width'))}"] if projector else []
    return Kind(
        str(method.get("name", "")),
        str(loss.get("name", "")),
        ", ".join(weights),
        _worded(embedding.get("pooling")),
        _worded(embedding.get("initialisation")),
        " and ".join(heads) or "linear",
        _worded(embedding.get("dim")),
    )


def _worded(value: Any) -> str:
    """A value as a kind states it: 1 and 1.0 are the same."""
    if isinstance(value, list):
        return "/".join(map(_worded, value))
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def rates_note(scale: str, rows: Iterable[tuple[str, Kind]], chosen: Collection[Kind]) -> str:
    """Note of a table on searched rates: the traits that tell kinds apart, and the rows with rates of another kind.

    Args:
        scale: whose choices they are.
        rows: label and kind of each.
        chosen: kinds that rates were chosen for.
    """
    if not chosen:
        return f"Rates of trunk and head: the scale's, as none are searched yet (params/rates/{scale}.csv)."
    told_apart = Kind._fields if any(kind.size for kind in chosen) else Kind._fields[:2]
    words = [field.removesuffix("_form") for field in told_apart]
    borrowing: dict[str, dict[str, None]] = {}
    for label, kind in rows:
        fields = zip(words, tried_as(kind, chosen) or kind, kind, strict=False)
        differing = [f"{word} {theirs or 'none'} for {own or 'none'}" for word, theirs, own in fields if theirs != own]
        if differing:
            borrowing.setdefault(" and ".join(differing), {})[label] = None
    borrowed = "; ".join(f"{said} in {_some(labels)}" for said, labels in borrowing.items())
    return (
        f"Rates of trunk and head: found for each kind ({', '.join(words)}) on classes held out of the training half, "
        f"among as many for all (params/rates/{scale}.csv)."
        + f" Not tried, and so with the rates of another kind: {borrowed}."
        * bool(borrowed)
    )


def _some(labels: Collection[str]) -> str:
    """The first of many labels."""
    few = ", ".join([*labels][:3])
    return f"{few} and {len(labels) - 3} more" if len(labels) > 3 else few


def design_of(rates: RateTrials) -> Design:
    """Design of a search of rates, as `lookalike.workflow.plan.halving` takes it."""
    return Design(rates.trunk, rates.head, [rung.survivors for rung in rates.rungs if rung.survivors])


def least_trials(rates: RateTrials) -> int:
    """Trainings of a kind whose best rates lie within the grid at once; a rung makes none that one before has made."""
    candidates = [len(rates.trunk) * len(rates.head), *design_of(rates).survivors]
    seen: set[int] = set()
    trainings = candidates[-1] * len(OWN) * len(rates.rungs[-1].seeds)  # the last rung's vary in a third rate
    for count, rung in zip(candidates, rates.rungs, strict=True):
        trainings, seen = trainings + count * len({*rung.seeds} - seen), seen | {*rung.seeds}
    return trainings


def tried(plan: Plan) -> list[Tried]:
    """The kinds whose rates are searched, whichever tables the call builds, for each half of the training classes.

    Those of tables, of claims (about recipes in these tables, or all with the papers' tables), and of the first, the
    middle and the last point of sweeps over lambda. Points of other sweeps and options of fidelity take the rates of
    the kind that is most like theirs.

    Raises:
        ValueError: for a scale that does not say how to search.
    """
    _design_stated(plan)
    first = _first_runs(plan)
    trains = {kind: plan.settings(*run).train for kind, run in first.items()}
    twins = {kind: twin_of(train) for kind, train in trains.items()}
    plain = [kind for kind, twin in twins.items() if twin is None]
    return [
        Tried(kind, *first[kind], half, has_part(trains[kind], "proxies"), twin and tried_as(twin, plain))
        for half in plan.halves
        for kind, twin in twins.items()
        if half in plan.halves_of(first[kind][1])
    ]


def trial_settings(plan: Plan, recipe: str, dataset: str) -> Tree:
    """Section ``train`` of all trials of a recipe, below their rates and their budget.

    The rates are those of recipe and scale, whatever was chosen before.

    Raises:
        ValueError: for a scale that does not say how to search.
    """
    train = merge(plan.before_rates(recipe, dataset)["train"], _design_stated(plan).train)
    return merge(train, {"budget": {"patience": None, "collapse": None, "metrics": ["R@1", METRIC]}})


def trained_as(settings: Tree, candidate: Candidate, rates: RateTrials) -> Tree:
    """Section ``train`` of one trial, which is measured after its last epoch alone.

    Args:
        settings: as `trial_settings` gives them.
        candidate: its rates.
        rates: key ``rates`` of the scale, with the budget of all trials.
    """
    budget = {"epochs": rates.epochs, "batches_per_epoch": rates.batches_per_epoch, "evaluate_every": rates.epochs}
    lr = _laid(candidate, part_of(settings["optimiser"], "lr").get("proxies"))
    return merge(settings, {"budget": budget, "optimiser": {"lr": lr}})


def choose(kinds: Sequence[Tried], scores: Sequence[Scores], design: Design) -> pd.DataFrame:
    """All trials of all kinds, with the choice for each; plain kinds first, as ties go to their pairs.

    Args:
        kinds: as `tried` gives them.
        scores: of each, MAP@R of every trial and seed.
        design: how rates were searched.
    """
    choices: dict[tuple[str, Kind], Choice] = {}
    of_kind = list(zip(kinds, scores, strict=True))
    for kind, reached in sorted(of_kind, key=lambda each: each[0].twin is not None):
        twin = choices[kind.half, kind.twin].candidate if kind.twin else None
        choices[kind.half, kind.kind] = chosen(reached, design, has_own=kind.has_own, twin=twin)
    rows = [row for kind, reached in of_kind for row in searched(kind, reached, choices[kind.half, kind.kind])]
    return pd.DataFrame(rows, columns=None if rows else COLUMNS)


def searched(kind: Tried, scores: Scores, choice: Choice) -> list[dict[str, Any]]:
    """Rows of all trials of a kind, as `chosen_rates` reads them; of the choice it is the last rung that says so."""
    last = max(asked.rung for asked in scores)
    return [
        {**kind.kind._asdict(), "recipe": kind.recipe, "dataset": kind.dataset, "half": kind.half, "rung": asked.rung}
        | asked.candidate._asdict()
        | {"seeds": len(of_seeds), METRIC: fmean(of_seeds), "of_seeds": " ".join(f"{each:.6g}" for each in of_seeds)}
        | {"chosen": (EDGE if choice.on_edge else "yes") if asked == (last, choice.candidate) else ""}
        for asked, of_seeds in scores.items()
    ]


def choose_rates(kinds: Sequence[Sequence[Any]], rates: RateTrials, *, trials: Sequence[str], output: str) -> None:
    """Write all trials with their scores, and which rates each kind of recipe takes.

    Args:
        kinds: as `tried` gives them.
        rates: key ``rates`` of the scale.
        trials: of each kind, as `write_scores` leaves them.
        output: CSV to write.
    """
    of_kind = [Tried(*each)._replace(kind=Kind(*each[0]), twin=each[-1] and Kind(*each[-1])) for each in kinds]
    found = choose(of_kind, [read_scores(file) for file in trials], design_of(rates))
    with replacing(output) as path:
        found.to_csv(path, index=False, float_format="%.6g")


def write_scores(scores: Scores, made_by: Mapping[Asked, Sequence[str]], code: str, output: str) -> None:
    """Write the scores of each trial by seed, with the digests of these trainings and of their code."""
    rows = [
        {"rung": asked.rung, **asked.candidate._asdict(), "of_seeds": " ".join(map(repr, of_seeds))}
        | {"made_by": " ".join(made_by[asked]), "code": code}
        for asked, of_seeds in scores.items()
    ]
    with replacing(output) as path:
        pd.DataFrame(rows).to_csv(path, index=False)


def read_scores(file: str | Path) -> dict[Asked, list[float]]:
    """Read the scores of each trial of a kind by seed."""
    rows = pd.read_csv(file, dtype=str).to_dict("records")
    return {
        Asked(int(row["rung"]), Candidate(*(float(row[name]) for name in Candidate._fields))): [
            *map(float, row["of_seeds"].split())
        ]
        for row in rows
    }


def read_known(file: str | Path, codes: Collection[str]) -> dict[str, float]:
    """Scores of a kind's trials by the digest of each training; none of a file that is not there.

    Args:
        file: of `write_scores`.
        codes: digests of code whose trials count.

    Raises:
        ValueError: for a file that is none of `write_scores`, naming it.
    """
    if not Path(file).is_file():
        return {}
    try:
        trials = pd.read_csv(file, dtype=str)[["made_by", "of_seeds", "code"]]
        trials = trials[trials["code"].isin(codes)]
        each = [zip(digests.split(), scores.split(), strict=True) for digests, scores, _ in trials.to_numpy()]
        return {digest: float(score) for pairs in each for digest, score in pairs}
    except (KeyError, ValueError, AttributeError) as error:
        right = "a code, and as many scores in of_seeds as digests in made_by are right"
        raise ValueError(f"{file}: {right} ({error})") from None


def _design_stated(plan: Plan) -> RateTrials:
    if plan.rates is None:
        raise ValueError(f"{plan.scale_file}: has no key rates; its rates are those of the recipes and of the scale")
    return plan.rates


def _first_runs(plan: Plan) -> dict[Kind, tuple[str, str]]:
    """By kind the first recipe, on the stand-in for `USUAL` where any of its kind runs there."""
    first: dict[Kind, tuple[str, str]] = {}
    runs: list[tuple[Kind, str, str]] = []
    for recipe, tested_on in _runs(plan):
        dataset = plan.training_dataset(recipe, tested_on)
        if kind := kind_of(plan.settings(recipe, dataset).train):
            runs.append((kind, recipe, dataset))
    for usual in (True, False):
        for kind, recipe, dataset in runs:
            if not usual or plan.datasets[dataset].stands_for == USUAL:
                first.setdefault(kind, (recipe, dataset))
    return {kind: first[kind] for kind, _, _ in runs}


def _runs(plan: Plan) -> Iterator[tuple[str, str]]:
    """Recipe and data set of every run that rates are tried for."""
    everything = plan.tables_of_scale == tables_of_papers()
    of_tables: set[str] = set()
    for table in [*plan.tables_of_scale, *[COMPARED] * everything]:
        if table in plan.known_tables:
            runs = plan.runs_of(table)[["recipe", "dataset"]].drop_duplicates()
            of_tables |= {*runs["recipe"]}
            yield from runs.itertuples(index=False, name=None)
    for claim in read_entries("params/claims.yaml", Claim).values():
        there = [dataset.name for dataset in plan.datasets.values() if dataset.stands_for in claim.datasets]
        recipes = dict.fromkeys(recipe for pair in claim.pairs for recipe in (pair.changed, pair.baseline))
        yield from product([recipe for recipe in recipes if everything or recipe in of_tables], there)
    figures = read_entries("params/figures.yaml", Figure)
    named = {*plan.tables_of_scale, *(run.sweep for name in plan.figures for run in figures[name].runs)}
    for name, sweep in plan.sweeps.items():
        at = [point.at.get(SWEPT) for point in sweep.points]
        if (everything or name in named) and all(isinstance(each, float) for each in at):
            swept = [*dict.fromkeys(at)]
            tried = {swept[0], swept[len(swept) // 2], swept[-1]}
            points = [point.name for point, value in zip(sweep.points, at, strict=True) if value in tried]
            yield from product(points, (dataset.name for dataset in plan.datasets_of(name)))
