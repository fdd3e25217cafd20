"""R@1 among the test pictures against R@1 among the training pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.measured import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

SEEN, UNSEEN = "train_R@1", "R@1"


def draw_losses(frame: pd.DataFrame) -> Picture:
    """A panel per data set, a line per loss and set-up from the best epoch to the last, starred."""
    from lookalike.figures.style import LOOKS, legend_below, panels

    datasets = list(frame["dataset"].unique())
    figure, axes = panels(1, len(datasets), height=2.3)
    for panel, dataset in zip(axes[0], datasets, strict=True):
        own = frame[frame["dataset"] == dataset]
        for look, ((loss, setting), points) in zip(LOOKS, own.groupby(["loss", "setting"], sort=False), strict=False):
            seen, unseen = _ends(points)
            panel.plot(seen, unseen, color=look.colour, marker=look.marker, linestyle="--", label=f"{loss}, {setting}")
            panel.errorbar(seen.iloc[-1], unseen.iloc[-1], *_deviations(points), color=look.colour, capsize=1.5)
            panel.plot(seen.iloc[-1:], unseen.iloc[-1:], color=look.colour, marker="*", markersize=8)
        _name(panel, dataset, own)
    axes[0, 0].set_ylabel("test R@1 (%)")
    legend_below(figure, axes[0, 0])
    return figure


def draw_weights(frame: pd.DataFrame) -> Picture:
    """One panel: the last epoch for every lambda, joined in its order."""
    from lookalike.figures.style import LOOKS, panels

    figure, axes = panels(1, 1, height=2.3)
    panel, last = axes[0, 0], frame[frame["checkpoint"] == "last"]
    means = 100 * last.groupby("lambda")[[SEEN, UNSEEN]].mean()
    panel.plot(means[SEEN], means[UNSEEN], color=LOOKS[0].colour, marker="o")
    for lam, points in last.groupby("lambda"):
        panel.errorbar(
            means[SEEN][lam], means[UNSEEN][lam], *_deviations(points), color=LOOKS[0].colour, capsize=1.5, lw=0.6
        )
        name = "λ = 0" if lam == 0 else f"{lam:g}"  # said once: points may lie close together
        panel.annotate(name, (means[SEEN][lam], means[UNSEEN][lam]), xytext=(3, 3), textcoords="offset points")
    panel.margins(0.12)
    _name(panel, last["dataset"].iloc[0], last)
    panel.set_ylabel("test R@1 (%)")
    return figure


def _ends(points: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Means over the seeds of both axes, at the best epoch and at the last."""
    means = 100 * points.groupby("checkpoint")[[SEEN, UNSEEN]].mean().loc[["best", "last"]]
    return means[SEEN], means[UNSEEN]


def _deviations(points: pd.DataFrame) -> tuple[float | None, float | None]:
    """Over the seeds of the last epoch in percent, vertical first; none for a single seed."""
    last = points[points["checkpoint"] == "last"]
    several = len(last) > 1
    return (100 * last[UNSEEN].std(), 100 * last[SEEN].std()) if several else (None, None)


def _name(panel: Axes, dataset: str, points: pd.DataFrame) -> None:
    panel.set_title(shown(dataset, points["published"].iloc[0]))
    panel.set_xlabel("train R@1 (%)")
