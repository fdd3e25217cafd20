"""The contextual part of the loss over the epochs, beside what the test pictures gain by it, for several lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookalike.figures.parts.form import Check, Figure, Run
from lookalike.figures.parts.measured import plot_means
from lookalike.figures.parts.trends import over_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

CLEAR = 0.5  # rank correlation from which one thing counts as going with another
CURVES = {"contextual": "$L_{context}$", "R@1": "test R@1 (%)"}


def data(runs: Sequence[Run], options: Mapping[str, Any]) -> pd.DataFrame:
    """Histories of trainings with the contextual loss.

    Args:
        runs: histories, each with its ``lambda``.
        options: none.

    Returns:
        ``dataset, seed, lambda, epoch``; ``contextual``, the mean of the contextual part over the epoch's batches; and
        of the test pictures ``R@1`` as a fraction, missing in epochs between two measurements.

    Raises:
        ValueError: for a history without one of them.

    Source: Supervised Metric Learning to Rank, Fig. 15.
    """
    return histories(runs, list(CURVES))


def histories(runs: Sequence[Run], columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of the histories of runs, each run with its ``dataset, seed, lambda``.

    Raises:
        ValueError: for a history without one of them.
    """
    frames = []
    for run in runs:
        history = pd.read_csv(run.path)
        if missing := [name for name in columns if name not in history]:
            raise ValueError(f"{run.path} has no column {missing[0]!r}; it has {', '.join(history.columns)}")
        of_run = {"dataset": run.dataset, "seed": run.seed, "lambda": float(run.place["lambda"])}
        frames.append(pd.DataFrame({**of_run, **history[["epoch", *columns]]}))
    return pd.concat(frames, ignore_index=True)


def draw(frame: pd.DataFrame) -> Picture:
    """Both curves over the epochs, a line per lambda, means over the seeds with error bars."""
    from matplotlib.ticker import MaxNLocator

    from lookalike.figures.parts.style import LOOKS, legend_below, panels

    figure, axes = panels(1, 2, height=2.1)
    for panel, (column, label) in zip(axes[0], CURVES.items(), strict=True):
        for look, (lam, points) in zip(LOOKS, frame.groupby("lambda"), strict=False):
            times = 1 if column == "contextual" else 100
            plot_means(panel, points, "epoch", column, look, f"λ = {lam:g}", times=times)
        panel.set_xlabel("epoch")
        panel.set_ylabel(label)
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    legend_below(figure, axes[0, 0], columns=3)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the contrastive loss lowers the contextual part too, and whether a lower one goes with a higher R@1."""
    alone = frame[frame["lambda"] == 0].pivot_table(index="epoch", columns="seed", values="contextual")
    measured = frame.dropna(subset=["R@1"])
    ranks = measured.groupby("seed")[["contextual", "R@1"]].rank().assign(seed=measured["seed"])
    correlation = ranks.groupby("seed")[["contextual", "R@1"]].apply(lambda own: own["contextual"].corr(own["R@1"]))
    last = measured.groupby(["lambda", "epoch"])[["contextual", "R@1"]].mean().groupby("lambda").last()
    lowest, best = last["contextual"].idxmin(), last["R@1"].idxmax()
    return [
        over_seeds(
            f"the contrastive loss alone (λ = 0) lowers L_context too: {alone.iloc[0].mean():.4f} in the first epoch, "
            f"{alone.iloc[-1].mean():.4f} in the last",
            1 - alone.iloc[-1] / alone.iloc[0],
            unit="of its first value",
            margin=0,
        ),
        over_seeds(
            f"a lower L_context goes with a higher test R@1 (rank correlation at most {-CLEAR:g}): at the end "
            f"L_context is lowest at λ = {lowest:g}, R@1 highest at λ = {best:g}",
            -correlation - CLEAR,
            unit="to spare",
            margin=0,
        ),
    ]


CURVES_OVER_EPOCHS = Figure(data, draw, checks)
