"""What the paper of the contextual loss varies: weights, its own settings, noise, and its parts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lookalike.figures.contextual.seen import SEEN, UNSEEN, draw_losses, draw_weights
from lookalike.figures.contextual.variants import FULL, NAMES, draw_variants
from lookalike.figures.parts.form import Check, Figure
from lookalike.figures.parts.measured import best, read_measured, shown
from lookalike.figures.parts.one_at_a_time import Panels, varied
from lookalike.figures.parts.one_axis import Lines
from lookalike.figures.parts.trends import always, best_within, compared, flat, groups, highest, mostly, rising, table

FLAT = 2.0  # points of R@1 within which a sweep counts as flat
RANKED = {"contextual": "Contextual", "contrastive_cosine": "Contrastive", "roadmap": "ROADMAP"}
NOISES = {"wrong labels": "wrong labels (%)", "wrong pictures": "wrong pictures (%)", "classes": "classes (%)"}
SETTINGS = {"eps": "ε", "gamma": "γ", "target": "s̃"}
SHARES = (0, 0.5, 1)


def check_weights(frame: pd.DataFrame) -> list[Check]:
    """The best is a mixture with much of the contextual part, and the regulariser never hurts."""
    checked = []
    for dataset, rows in groups(best(frame), ["dataset"]):
        values: Any = 100 * rows.pivot_table(index=["gamma", "lambda"], columns="seed", values="R@1")
        inside = [place for place in values.index if 0.8 <= place[1] <= 0.9]
        checked.append(
            best_within(values, inside, f"{dataset[0]}: R@1 is best at λ of 0.8 to 0.9 (γ, λ): {highest(values)}")
        )
        without, *weights = [each.droplevel("gamma") for _, each in values.groupby("gamma")]
        changes = [each.loc[lam] - without.loc[lam] for each in weights for lam in without.index]
        checked.append(always(changes, f"{dataset[0]}: the regulariser hurts no λ"))
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
    """The contextual loss has the higher R@1 on test pictures at the lower one on training pictures."""
    checked = []
    for (dataset, setting), rows in groups(frame[frame["checkpoint"] == "last"], ["dataset", "setting"]):
        seen, unseen = (table(rows, "loss", metric) for metric in (SEEN, UNSEEN))
        case = f"{dataset}, {setting}"
        checked += [
            compared(unseen, "Contextual", "Contrastive", f"{case}: test R@1 is higher with Contextual"),
            compared(seen, "Contrastive", "Contextual", f"{case}: train R@1 is higher with Contrastive"),
        ]
    return checked


def check_seen_weights(frame: pd.DataFrame) -> list[Check]:
    """Less of the contextual part raises R@1 on training pictures; on test pictures it is best at about 0.9."""
    last = frame[frame["checkpoint"] == "last"].assign(less=lambda rows: 1 - rows["lambda"])
    unseen = table(last, "lambda", UNSEEN)
    inside = [lam for lam in unseen.index if 0.8 <= lam < 1]
    return [
        rising(table(last, "less", SEEN), "train R@1 rises as λ falls, with 1 - λ"),
        best_within(unseen, inside, f"test R@1 is highest between λ = 0.8 and 1: {highest(unseen)}"),
    ]


def check_variants(frame: pd.DataFrame) -> list[Check]:
    """Every change of the contextual similarity makes it worse."""
    rows = best(frame)
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
        checked.append(mostly(gains, f"{name}: {'detached is better, λ ≥ 0.8' if helps else 'attached is better'}"))
    return checked


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
