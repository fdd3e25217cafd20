"""Figures of finished metrics: how each is laid out, and what its paper claims, held against the numbers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lookalike.figures.form import Check, Figure
from lookalike.figures.measured import best, read_measured, shown
from lookalike.figures.one_at_a_time import Panels, varied
from lookalike.figures.one_axis import Lines
from lookalike.figures.seen import SEEN, UNSEEN, draw_losses, draw_weights
from lookalike.figures.trends import always, compared, groups, mostly, rising, table
from lookalike.figures.variants import FULL, draw_variants

FLAT = 2.0  # points of R@1 within which a sweep counts as flat
SATURATED = 0.5  # points of P@1 that more candidates may still bring
LOSSES = {"margin": "Margin", "multi_similarity": "Multi-Similarity"}
RANKED = {"contextual": "Contextual", "contrastive_cosine": "Contrastive", "roadmap": "ROADMAP"}
NOISES = {"wrong labels": "wrong labels (%)", "wrong pictures": "wrong pictures (%)", "classes": "classes (%)"}
SETTINGS = {"eps": "ε", "gamma": "γ", "target": "s̃"}


def check_edges(frame: pd.DataFrame) -> list[Check]:
    """R@1 rises with k, and less and less."""
    values = table(best(frame), "k", "R@1")
    means, half = values.mean(axis=1), len(values) // 2
    first, second = means.iloc[half] - means.iloc[0], means.iloc[-1] - means.iloc[half]
    half_k = means.index[half]
    says = f"it rises beyond k = {half_k:g}, by less than up to there: {second:+.1f} against {first:+.1f} points"
    return [rising(values, "R@1 rises with k"), Check(f"{says}{_one(values)}", bool(first > second > 0))]


def check_size(frame: pd.DataFrame) -> list[Check]:
    """R@1 rises with the embedding size."""
    return [rising(table(best(frame), "r", "R@1"), "R@1 rises with the embedding size")]


def check_momentum(frame: pd.DataFrame) -> list[Check]:
    """Momentum helps, and 0.5 is the best of those printed."""
    values = table(best(frame), "gamma", "R@1")
    return [
        compared(values, 0.5, 0.0, "R@1 is higher with momentum 0.5 than without"),
        compared(values, 0.5, 0.95, "R@1 is higher with momentum 0.5 than with 0.95"),
        _range(values, "R@1", "γ"),
    ]


def check_candidates(frame: pd.DataFrame) -> list[Check]:
    """Few candidates bring most of the gain, more than 100 nothing."""
    tables = [table(rows, "K", "P@1") for _, rows in groups(best(frame), ["dataset", "loss"])]
    later = [values.loc[500] - values.loc[100] for values in tables]
    largest = max(abs(float(each.mean())) for each in later)
    early, late = (sum(float((each.loc[k] - each.loc[0]).mean()) for each in tables) for k in (20, 500))
    return [
        always([values.loc[100] - values.loc[0] for values in tables], "100 candidates raise P@1"),
        Check(
            f"20 candidates bring most of the gain: {early / len(tables):+.1f} points of P@1 on average, 500 "
            f"{late / len(tables):+.1f}{_one(tables[0])}",
            bool(late > 0 and early > late / 2),
        ),
        Check(
            f"P@1 is saturated at K = 100: K = 500 differs by at most {largest:.2f} points (limit {SATURATED:g})"
            + _one(tables[0]),
            largest <= SATURATED,
        ),
    ]


def check_grid_side(frame: pd.DataFrame) -> list[Check]:
    """A finer grid is better, with P@1 of G = 4 above that of a single location."""
    tables = {key: table(rows, "G", "P@1") for key, rows in groups(best(frame), ["dataset", "loss"])}
    found = [always([values.loc[4] - values.loc[1] for values in tables.values()], "P@1 is higher at G = 4 than at 1")]
    found += [
        rising(values, f"{dataset}, {LOSSES[loss]}: P@1 rises with G") for (dataset, loss), values in tables.items()
    ]
    return found


def check_weights(frame: pd.DataFrame) -> list[Check]:
    """The best is a mixture with much of the contextual part, and the regulariser never hurts."""
    found = []
    for dataset, rows in groups(best(frame), ["dataset"]):
        one = _one(table(rows, "lambda", "R@1"))
        means: Any = 100 * rows.groupby(["gamma", "lambda"])["R@1"].mean()
        gamma, lam = means.idxmax()
        says = f"{dataset[0]}: R@1 is best at λ of 0.8 to 0.9: it is {means.max():.1f} % at λ = {lam:g}, γ = {gamma:g}"
        found.append(Check(says + one, bool(0.8 <= lam <= 0.9)))
        without, *weights = [each.droplevel("gamma") for _, each in means.groupby("gamma")]
        changes = pd.concat([each - without for each in weights])
        says = (
            f"{dataset[0]}: the regulariser hurts no λ: it raises R@1 in {int((changes > 0).sum())} of {len(changes)} "
            f"cases, by {changes.mean():+.1f} points on average, and lowers it by up to {max(0.0, -changes.min()):.1f}"
        )
        found.append(Check(says + one, bool(changes.min() >= 0 and changes.max() > 0)))
    return found


def check_tuning(frame: pd.DataFrame) -> list[Check]:
    """R@1 hardly depends on eps, gamma and the target similarity."""
    found = []
    for name, label in SETTINGS.items():
        values = table(varied(frame, name, SETTINGS), name, "R@1")
        spread = _spread(values)
        says = f"R@1 is flat over {label}: it varies by {spread:.1f} points (limit {FLAT:g})"
        found.append(Check(says + _one(values), spread <= FLAT))
    return found


def check_robustness(frame: pd.DataFrame) -> list[Check]:
    """The contextual loss is best at every level of every disturbance."""
    found = []
    for name in NOISES:
        tables = {loss: table(rows, name, "R@1") for loss, rows in varied(frame, name, NOISES).groupby("loss")}
        ours = tables.pop("contextual")
        gains = [ours.loc[level] - values.loc[level] for values in tables.values() for level in ours.index]
        found.append(always(gains, f"{name}: R@1 of the contextual loss is above that of the others"))
    return found


def check_seen_losses(frame: pd.DataFrame) -> list[Check]:
    """The contextual loss has the higher R@1 on test pictures at the lower one on training pictures."""
    found = []
    for (dataset, setting), rows in groups(frame[frame["checkpoint"] == "last"], ["dataset", "setting"]):
        seen, unseen = (table(rows, "loss", metric) for metric in (SEEN, UNSEEN))
        place = f"{dataset}, {setting}"
        found += [
            compared(unseen, "Contextual", "Contrastive", f"{place}: test R@1 is higher with Contextual"),
            compared(seen, "Contrastive", "Contextual", f"{place}: train R@1 is higher with Contrastive"),
        ]
    return found


def check_seen_weights(frame: pd.DataFrame) -> list[Check]:
    """Less of the contextual part raises R@1 on training pictures; on test pictures it is best at about 0.9."""
    last = frame[frame["checkpoint"] == "last"].assign(less=lambda rows: 1 - rows["lambda"])
    unseen = table(last, "lambda", UNSEEN).mean(axis=1)
    says = f"test R@1 is highest between λ = 0.8 and 1: it is {unseen.max():.1f} % at λ = {unseen.idxmax():g}"
    return [
        rising(table(last, "less", SEEN), "train R@1 rises as λ falls, with 1 - λ"),
        Check(says + _one(table(last, "lambda", UNSEEN)), bool(0.8 <= unseen.idxmax() < 1)),
    ]


def check_variants(frame: pd.DataFrame) -> list[Check]:
    """Every change of the contextual similarity makes it worse."""
    rows = best(frame)
    found = []
    for variant in [name for name in rows["variant"].unique() if name != FULL]:
        gains = []
        for _, own in groups(rows, ["dataset"]):
            full, changed = (table(own[own["variant"] == name], "lambda", "R@1") for name in (FULL, variant))
            gains += [full.loc[lam] - changed.loc[lam] for lam in full.index]
        found.append(mostly(gains, f"the full loss is better than {variant.replace('_', ' ')}"))
    return found


def check_detached(frame: pd.DataFrame) -> list[Check]:
    """Detaching helps on products at high lambda, and hurts elsewhere."""
    found = []
    for published, rows in groups(best(frame), ["published"]):
        attached, detached = (
            table(rows[rows["normaliser"] == name], "lambda", "R@1") for name in ("attached", "detached")
        )
        helps = published[0] == "sop"
        name = shown(rows["dataset"].iloc[0], published[0])
        gains = [
            detached.loc[lam] - attached.loc[lam] if helps else attached.loc[lam] - detached.loc[lam]
            for lam in attached.index
            if not helps or lam >= 0.8
        ]
        found.append(mostly(gains, f"{name}: {'detached is better, λ ≥ 0.8' if helps else 'attached is better'}"))
    return found


def check_mining(frame: pd.DataFrame) -> list[Check]:
    """Nothing is claimed but that mining helps."""
    values = table(best(frame), "gamma", "R@1")
    return [compared(values, 0.2, 0.0, "R@1 is higher with weight 0.2 than without mining"), _range(values, "R@1", "γ")]


def check_mask(frame: pd.DataFrame) -> list[Check]:
    """Nothing is claimed: how much the constants matter."""
    means: Any = 100 * best(frame).groupby(["alpha", "beta"])["R@1"].mean()
    alpha, beta = means.idxmax()
    says = f"R@1 varies by {means.max() - means.min():.1f} points; it is highest, {means.max():.1f} %, at "
    return [Check(f"{says}α = {alpha:g}, β = {beta:g}", None, claimed=False)]


def _range(values: Any, metric: str, label: str) -> Check:
    means = values.mean(axis=1)
    says = f"{metric} varies by {_spread(values):.1f} points; it is highest, {means.max():.1f} %, at "
    return Check(f"{says}{label} = {means.idxmax():g}", None, claimed=False)


def _spread(values: Any) -> float:
    means = values.mean(axis=1)
    return float(means.max() - means.min())


def _one(values: Any) -> str:
    """Over how many seeds the means are that a verdict rests on."""
    return "; one seed" if values.shape[1] == 1 else f"; means of {values.shape[1]} seeds"


POWERS = (8, 32, 128, 512)
SHARES = (0, 0.5, 1)
EDGES = Figure(read_measured, Lines("k", "k of 512 nodes", ("R@1", "MAP@R"), logarithmic=2, ticks=POWERS), check_edges)
SIZE = Figure(
    read_measured, Lines("r", "r, of 512", ("R@1", "MAP@R"), logarithmic=2, ticks=(64, 128, 256, 512)), check_size
)
MOMENTUM = Figure(read_measured, Lines("gamma", "momentum γ", ("R@1", "MAP@R"), ticks=SHARES), check_momentum)
CANDIDATES = Figure(
    read_measured,
    Lines("K", "candidates K", ("P@1", "MAP@R"), series="loss", named=LOSSES, ticks=(0, 100, 300, 500)),
    check_candidates,
)
GRID_SIDE = Figure(
    read_measured,
    Lines("G", "grid side G", ("P@1", "MAP@R"), series="loss", named=LOSSES, ticks=(1, 2, 4, 7)),
    check_grid_side,
)
WEIGHTS = Figure(
    read_measured,
    Lines(
        "lambda",
        "λ",
        ("R@1",),
        series="gamma",
        named={f"{g:g}": f"γ = {g:g}" for g in (0, 0.1, 0.3)},
        ticks=SHARES,
        panel_height=1.7,
    ),
    check_weights,
)
TUNING = Figure(read_measured, Panels(SETTINGS), check_tuning)
ROBUSTNESS = Figure(read_measured, Panels(NOISES, series="loss", named=RANKED, percent=True), check_robustness)
SEEN_LOSSES = Figure(read_measured, draw_losses, check_seen_losses)
SEEN_WEIGHTS = Figure(read_measured, draw_weights, check_seen_weights)
VARIANTS = Figure(read_measured, draw_variants, check_variants)
DETACHED = Figure(
    read_measured,
    Lines("lambda", "λ", ("R@1",), series="normaliser", ticks=(0.4, 0.7, 1), panel_height=1.6),
    check_detached,
)
MINING = Figure(read_measured, Lines("gamma", "weight of the mining γ", ("R@1", "MAP@R"), ticks=SHARES), check_mining)
MASK = Figure(
    read_measured,
    Lines(
        "beta",
        "threshold β",
        ("R@1", "MAP@R"),
        series="alpha",
        named={f"{alpha:g}": f"α = {alpha:g}" for alpha in (5, 10, 30)},
        ticks=(0.3, 0.5, 0.7),
    ),
    check_mask,
)
