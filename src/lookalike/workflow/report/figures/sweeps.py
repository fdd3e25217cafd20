"""Sweeps over the settings that the four papers vary, and the papers' claims about them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lookalike.workflow.report.figures.contextual.ablation import (
    FULL,
    NAMES,
    SEEN,
    UNSEEN,
    at_rates,
    draw_losses,
    draw_mixtures,
    draw_variants,
    draw_weights,
)
from lookalike.workflow.report.figures.parts.form import Check, Figure
from lookalike.workflow.report.figures.parts.series import Lines, Panels, read_measured, reported, shown, varied
from lookalike.workflow.report.figures.parts.trends import (
    always,
    best_within,
    compared,
    flat,
    groups,
    highest,
    least,
    mostly,
    rising,
    table,
    value_range,
)

POWERS = (8, 32, 128, 512)
SHARES = (0, 0.5, 1)
FLAT = 2.0  # points of R@1 within which a sweep counts as flat
RANKED = {"contextual": "Contextual", "contrastive_cosine": "Contrastive", "roadmap": "ROADMAP"}
NOISES = {"wrong labels": "wrong labels (%)", "wrong pictures": "wrong pictures (%)", "classes": "classes (%)"}
SETTINGS = {"eps": "ε", "gamma": "γ", "target": "s̃"}
SATURATED = 0.5  # points of P@1 that more candidates may still bring
LOSSES = {"margin": "Margin", "multi_similarity": "Multi-Similarity"}


def check_edges(frame: pd.DataFrame) -> list[Check]:
    """R@1 rises with k, and less and less."""
    values = table(reported(frame), "k", "R@1")
    half = len(values) // 2
    first, second = values.iloc[half] - values.iloc[0], values.iloc[-1] - values.iloc[half]
    says = (
        f"it rises beyond k = {values.index[half]:g}, by less than up to there: {second.mean():+.1f} against "
        f"{first.mean():+.1f} points"
    )
    return [rising(values, "R@1 rises with k"), always([second, first - second], says)]


def check_size(frame: pd.DataFrame) -> list[Check]:
    """R@1 rises with the embedding size."""
    return [rising(table(reported(frame), "r", "R@1"), "R@1 rises with the embedding size")]


def check_momentum(frame: pd.DataFrame) -> list[Check]:
    """Momentum helps, and 0.5 is the best of those printed."""
    values = table(reported(frame), "gamma", "R@1")
    return [
        compared(values, 0.5, 0.0, "R@1 is higher with momentum 0.5 than without"),
        compared(values, 0.5, 0.95, "R@1 is higher with momentum 0.5 than with 0.95"),
        value_range(values, "R@1", "γ"),
    ]


EDGES = Figure(read_measured, Lines("k", "k of 512 nodes", ("R@1", "MAP@R"), logarithmic=2, ticks=POWERS), check_edges)
SIZE = Figure(
    read_measured, Lines("r", "r, of 512", ("R@1", "MAP@R"), logarithmic=2, ticks=(64, 128, 256, 512)), check_size
)
MOMENTUM = Figure(read_measured, Lines("gamma", "momentum γ", ("R@1", "MAP@R"), ticks=SHARES), check_momentum)


def check_weights(frame: pd.DataFrame) -> list[Check]:
    """The best is a mixture with much of the contextual part, and the regulariser never hurts, at every rate."""
    checked = []
    of_rates = groups(at_rates(reported(frame)), ["dataset", "rate"])
    several = len(of_rates) > len(frame["dataset"].unique())
    for (dataset, rate), rows in of_rates:
        case = f"{dataset}, rate {rate:g}" if several else dataset
        values: Any = 100 * rows.pivot_table(index=["gamma", "lambda"], columns="seed", values="R@1")
        inside = [place for place in values.index if 0.8 <= place[1] <= 0.9]
        checked.append(best_within(values, inside, f"{case}: R@1 is best at λ of 0.8 to 0.9 (γ, λ): {highest(values)}"))
        without, *weights = [each.droplevel("gamma") for _, each in values.groupby("gamma")]
        if weights:  # one γ alone is tried at rates that are not the recipe's
            changes = [each.loc[lam] - without.loc[lam] for each in weights for lam in without.index]
            checked.append(always(changes, f"{case}: the regulariser hurts no λ"))
    return checked


def check_tuning(frame: pd.DataFrame) -> list[Check]:
    """R@1 hardly depends on eps, gamma and the target similarity."""
    checked = []
    for name, label in SETTINGS.items():
        values = table(varied(frame, name, SETTINGS), name, "R@1")
        checked.append(flat(values, FLAT, f"R@1 is flat over {label}"))
    return checked


def check_robustness(frame: pd.DataFrame) -> list[Check]:
    """The contextual loss is best at every level of every disturbance."""
    checked = []
    for name in NOISES:
        tables = {loss: table(rows, name, "R@1") for loss, rows in varied(frame, name, NOISES).groupby("loss")}
        ours = tables.pop("contextual")
        gains = [ours.loc[level] - values.loc[level] for values in tables.values() for level in ours.index]
        checked.append(always(gains, f"{name}: R@1 of the contextual loss is above that of the others"))
    return checked


def check_seen_losses(frame: pd.DataFrame) -> list[Check]:
    """The contextual loss has a higher R@1 on test pictures at a lower one on training pictures than all others."""
    checked = []
    for (dataset, setting), rows in groups(reported(frame), ["dataset", "setting"]):
        seen, unseen = (table(rows, "loss", metric) for metric in (SEEN, UNSEEN))
        others = unseen.index.drop("Contextual")
        higher = [unseen.loc["Contextual"] - unseen.loc[loss] for loss in others]
        lower = [seen.loc[loss] - seen.loc["Contextual"] for loss in others]
        checked += [
            always(higher, f"{dataset}, {setting}: test R@1 is higher with Contextual"),
            always(lower, f"{dataset}, {setting}: train R@1 is lower with Contextual"),
        ]
    return checked


def check_seen_weights(frame: pd.DataFrame) -> list[Check]:
    """Less of the contextual part raises R@1 on training pictures; on test pictures it is best at about 0.9."""
    last = reported(frame).assign(less=lambda rows: 1 - rows["lambda"])
    unseen = table(last, "lambda", UNSEEN)
    inside = [lam for lam in unseen.index if 0.8 <= lam < 1]
    return [
        rising(table(last, "less", SEEN), "train R@1 rises as λ falls, with 1 - λ"),
        best_within(unseen, inside, f"test R@1 is highest between λ = 0.8 and 1: {highest(unseen)}"),
    ]


def check_variants(frame: pd.DataFrame) -> list[Check]:
    """Every change of the contextual similarity makes it worse."""
    rows = reported(frame)
    checked = []
    for variant in [name for name in rows["variant"].unique() if name != FULL]:
        gains = []
        for _, of_dataset in groups(rows, ["dataset"]):
            full, changed = (
                table(of_dataset[of_dataset["variant"] == name], "lambda", "R@1") for name in (FULL, variant)
            )
            gains += [full.loc[lam] - changed.loc[lam] for lam in full.index]
        checked.append(mostly(gains, f"the full loss is better than {NAMES[variant]}"))
    return checked


def check_detached(frame: pd.DataFrame) -> list[Check]:
    """Detaching helps on products at high lambda, and hurts elsewhere."""
    checked = []
    for published, rows in groups(reported(frame), ["published"]):
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
        checked.append(mostly(gains, f"{name}: {'detached is better, λ ≥ 0.8' if helps else 'attached is better'}"))
    return checked


WEIGHTS = Figure(read_measured, draw_mixtures, check_weights)
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


def check_candidates(frame: pd.DataFrame) -> list[Check]:
    """Few candidates bring most of the gain, more than 100 nothing."""
    tables = [table(rows, "K", "P@1") for _, rows in groups(reported(frame), ["dataset", "loss"])]
    later = pd.DataFrame([values.loc[500] - values.loc[100] for values in tables]).reset_index(drop=True)
    either_way = pd.concat([later, -later], ignore_index=True)
    early, late = (sum(values.loc[k] - values.loc[0] for values in tables) / len(tables) for k in (20, 500))
    return [
        always([values.loc[100] - values.loc[0] for values in tables], "100 candidates raise P@1"),
        always(
            [late, early - late / 2],
            f"20 candidates bring most of the gain: {early.mean():+.1f} points of P@1 on average, 500 "
            f"{late.mean():+.1f}",
        ),
        least(
            SATURATED - either_way,
            f"P@1 is saturated at K = 100: K = 500 differs by at most {SATURATED:g} points",
            unit="points to spare",
            margin=0,
        ),
    ]


def check_grid_side(frame: pd.DataFrame) -> list[Check]:
    """A finer grid is better, with P@1 of G = 4 above that of a single location."""
    tables = {key: table(rows, "G", "P@1") for key, rows in groups(reported(frame), ["dataset", "loss"])}
    checked = [
        always([values.loc[4] - values.loc[1] for values in tables.values()], "P@1 is higher at G = 4 than at 1")
    ]
    checked += [
        rising(values, f"{dataset}, {LOSSES[loss]}: P@1 rises with G") for (dataset, loss), values in tables.items()
    ]
    return checked


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


def check_mining(frame: pd.DataFrame) -> list[Check]:
    """Nothing is claimed but that mining helps."""
    values = table(reported(frame), "gamma", "R@1")
    return [
        compared(values, 0.2, 0.0, "R@1 is higher with weight 0.2 than without mining"),
        value_range(values, "R@1", "γ"),
    ]


def check_mask(frame: pd.DataFrame) -> list[Check]:
    """Nothing is claimed: how much the constants matter."""
    means: Any = 100 * reported(frame).groupby(["alpha", "beta"])["R@1"].mean()
    alpha, beta = means.idxmax()
    says = f"R@1 varies by {means.max() - means.min():.1f} points; it is highest, {means.max():.1f} %, at "
    return [Check(f"{says}α = {alpha:g}, β = {beta:g}", claimed=False)]


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
