"""Parts of the contextual loss left out or changed.

By how much every variant changes R@1 of the full one over the weights of the loss, R@1 over these weights, and R@1
among the test images against R@1 among the training images.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

from lookalike.metrics.names import BEST, REPORTED
from lookalike.workflow.report.figures.parts.series import plot_means, reported, shown, widen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

FULL = "full"
# As the paper's appendix has them.
NAMES = {
    "l1": "L1",
    "l1_sigmoid": "L1, sigmoid",
    "l2": "L2",
    "skip_intersection": "without step 2",
    "min": "minimum as “and”",
    "sigmoid": "sigmoid as step",
    "positive_only": "M+ alone",
    "no_stop_gradient": "no stop gradient",
}
SEEN, UNSEEN = "train_R@1", "R@1"


def draw_variants(frame: pd.DataFrame) -> Picture:
    """A panel per data set: the change by each variant, small per lambda, large for their mean, with error bars."""
    from matplotlib.lines import Line2D

    from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, panels

    points = reported(frame)
    datasets = list(points["dataset"].unique())
    others = [name for name in points["variant"].unique() if name != FULL]
    figure, axes = panels(1, len(datasets), height=2.6, sharex=True, sharey=True)
    for panel, dataset in zip(axes[0], datasets, strict=True):
        of_dataset = points[points["dataset"] == dataset]
        reached = 100 * of_dataset.pivot_table(index=["lambda", "seed"], columns="variant", values="R@1")
        panel.axvline(0, color=REFERENCE, linestyle=":")
        for height, variant in enumerate(others):
            change = reached[variant] - reached[FULL]
            single, of_seed = change.groupby("lambda").mean(), change.groupby("seed").mean()
            panel.plot(single, [height] * len(single), "o", color=LOOKS[0].colour, alpha=0.5, mew=0)
            panel.errorbar(
                of_seed.mean(),
                height,
                xerr=of_seed.std() if len(of_seed) > 1 else None,
                fmt="D",
                color=LOOKS[4].colour,
                markersize=4,
                capsize=1.5,
                elinewidth=0.6,
            )
        panel.set_xlabel("change (points)")
        panel.set_title(shown(dataset, of_dataset["published"].iloc[0]))
    axes[0, 0].set_yticks(range(len(others)), [NAMES[name] for name in others])
    axes[0, 0].set_ylim(len(others) - 0.5, -0.5)
    handles = [
        Line2D([], [], color=LOOKS[0].colour, marker="o", linestyle="", alpha=0.5, mew=0, label="one λ"),
        Line2D([], [], color=LOOKS[4].colour, marker="D", linestyle="", markersize=4, label="mean over all λ"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def draw_losses(frame: pd.DataFrame) -> Picture:
    """A row of panels per set-up, a line per loss from the best epoch, a ring, to the last, filled."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, panels

    settings, datasets = (list(frame[name].unique()) for name in ("setting", "dataset"))
    # There are more losses than looks: once round, colours come again with the next one's marker.
    rounds = {loss: divmod(number, len(LOOKS)) for number, loss in enumerate(frame["loss"].unique())}
    figure, axes = panels(len(settings), len(datasets), height=0.9 + 1.7 * len(settings))
    for panel, (setting, dataset) in zip(axes.flat, product(settings, datasets), strict=True):
        rows = frame[(frame["setting"] == setting) & (frame["dataset"] == dataset)]
        for loss, points in rows.groupby("loss", sort=False):
            again, number = rounds[str(loss)]
            colour, marker = LOOKS[number].colour, LOOKS[(number + again) % len(LOOKS)].marker
            seen, unseen = _ends(points)
            appearance = {"color": colour, "marker": marker, "linestyle": "", "clip_on": False}
            panel.plot(seen, unseen, color=colour, linestyle="--")
            panel.plot(seen.iloc[0], unseen.iloc[0], **appearance, markersize=7.5, markerfacecolor="none")
            panel.errorbar(seen.iloc[-1], unseen.iloc[-1], *_deviations(points), color=colour, capsize=1.5)
            panel.plot(seen.iloc[-1], unseen.iloc[-1], **appearance, label=loss)
        panel.margins(0.12)
        panel.set_title(f"{shown(dataset, rows['published'].iloc[0])}, {setting}")
    for panel in axes[-1]:
        panel.set_xlabel("train R@1 (%)")
    for panel in axes[:, 0]:
        panel.set_ylabel("test R@1 (%)")
    _legend(figure, axes.flat, 3, title="ring: best epoch, filled: last")
    return figure


def at_rates(points: pd.DataFrame) -> pd.DataFrame:
    """Points of mixtures, at one rate for all where the scale has chosen that of each point."""
    several = points.groupby(["dataset", "gamma", "lambda"])["rate"].nunique().max() > 1
    return points if several else points.assign(rate=points["rate"].iloc[0])


def draw_mixtures(frame: pd.DataFrame) -> Picture:
    """A panel per data set: R@1 over lambda, a colour per gamma, a marker per rate where there are several."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, Look, panels

    points = at_rates(reported(frame))
    datasets, gammas, rates = (list(points[name].unique()) for name in ("dataset", "gamma", "rate"))
    figure, axes = panels(1, len(datasets), height=2.35 if len(rates) == 1 else 3)
    for panel, dataset in zip(axes[0], datasets, strict=True):
        own = points[points["dataset"] == dataset]
        for (gamma, rate), line in own.groupby(["gamma", "rate"]):
            of_gamma, of_rate = LOOKS[gammas.index(gamma)], LOOKS[sorted(rates).index(rate)]
            label = f"γ = {gamma:g}" if len(rates) == 1 else f"γ = {gamma:g}, rate {rate:g}"
            plot_means(panel, line, "lambda", "R@1", Look(of_gamma.colour, of_rate.marker, of_gamma.line), label)
        default = own["paper lambda"].iloc[0]
        panel.axvline(default, color=REFERENCE, linestyle=":", linewidth=0.9, label="default")
        widen(panel)
        panel.set_xlabel("λ")
        panel.set_title(shown(dataset, own["published"].iloc[0]))
    axes[0, 0].set_ylabel("R@1 (%)")
    _legend(figure, axes.flat, 4 if len(rates) == 1 else 2)
    return figure


def draw_weights(frame: pd.DataFrame) -> Picture:
    """The last epoch for every lambda: test against train R@1 on the left, both over lambda on the right."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, legend_below, panels

    figure, axes = panels(1, 2, height=2.4)
    (left, right), last = axes[0], reported(frame)
    means = 100 * last.groupby("lambda")[[SEEN, UNSEEN]].mean()
    for lam, points in last.groupby("lambda"):
        centre = means[SEEN][lam], means[UNSEEN][lam]
        left.errorbar(*centre, *_deviations(points), color=LOOKS[0].colour, capsize=1.5, lw=0.6)
    weights = left.scatter(means[SEEN], means[UNSEEN], c=means.index, cmap="viridis", s=16, zorder=3)
    figure.colorbar(weights, ax=left, label="λ", location="bottom", aspect=25)
    left.margins(0.12)
    left.set_title(shown(last["dataset"].iloc[0], last["published"].iloc[0]))
    left.set_xlabel("train R@1 (%)")
    left.set_ylabel("test R@1 (%)")
    for look, (column, label) in zip(LOOKS, {SEEN: "train", UNSEEN: "test"}.items(), strict=False):
        plot_means(right, last, "lambda", column, look, label)
    right.set_xlabel("λ")
    right.set_ylabel("R@1 (%)")
    widen(right)
    legend_below(figure, right)
    return figure


def _ends(points: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Means over the seeds of both axes, at the best epoch and at the last."""
    means = 100 * points.groupby("checkpoint")[[SEEN, UNSEEN]].mean().loc[[BEST, REPORTED]]
    return means[SEEN], means[UNSEEN]


def _deviations(points: pd.DataFrame) -> tuple[float | None, float | None]:
    """Over the seeds of the last epoch in percent, vertical first; none for a single seed."""
    last = reported(points)
    several = len(last) > 1
    return (100 * last[UNSEEN].std(), 100 * last[SEEN].std()) if several else (None, None)


def _legend(figure: Picture, panels: Iterable[Axes], columns: int, title: str | None = None) -> None:
    """One legend for panels that need not show the same lines."""
    handles = {
        label: handle for each in panels for handle, label in zip(*each.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, title=title, loc="outside lower center", ncols=columns, columnspacing=1.2)
