"""Parts of the contextual loss left out or changed.

By how much every variant changes R@1 of the full one over the weights of the loss, and R@1 among the test images
against R@1 among the training images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.parts.series import best, plot_means, shown, widen

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
    """A panel per data set: what each variant changes, small per lambda, large for their mean, with error bars."""
    from matplotlib.lines import Line2D

    from lookalike.figures.parts.style import LOOKS, REFERENCE, panels

    points = best(frame)
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
    """A panel per data set, a line per loss and set-up from the best epoch, a ring, to the last, filled."""
    from lookalike.figures.parts.style import LOOKS, panels

    datasets = list(frame["dataset"].unique())
    figure, axes = panels(1, len(datasets), height=2.5)
    for panel, dataset in zip(axes[0], datasets, strict=True):
        rows = frame[frame["dataset"] == dataset]
        for look, ((loss, setting), points) in zip(LOOKS, rows.groupby(["loss", "setting"], sort=False), strict=False):
            seen, unseen = _ends(points)
            appearance = {"color": look.colour, "marker": look.marker, "linestyle": "", "clip_on": False}
            panel.plot(seen, unseen, color=look.colour, linestyle="--")
            panel.plot(seen.iloc[0], unseen.iloc[0], **appearance, markersize=7.5, markerfacecolor="none")
            panel.errorbar(seen.iloc[-1], unseen.iloc[-1], *_deviations(points), color=look.colour, capsize=1.5)
            panel.plot(seen.iloc[-1], unseen.iloc[-1], **appearance, label=f"{loss}, {setting}")
        panel.margins(0.12)
        _name(panel, dataset, rows)
    axes[0, 0].set_ylabel("test R@1 (%)")
    labelled = axes[0, 0].get_legend_handles_labels()
    figure.legend(*labelled, title="ring: best epoch, filled: last", loc="outside lower center", ncols=2)
    return figure


def draw_weights(frame: pd.DataFrame) -> Picture:
    """The last epoch for every lambda: test against train R@1 on the left, both over lambda on the right."""
    from lookalike.figures.parts.style import LOOKS, legend_below, panels

    figure, axes = panels(1, 2, height=2.4)
    (left, right), last = axes[0], frame[frame["checkpoint"] == "last"]
    means = 100 * last.groupby("lambda")[[SEEN, UNSEEN]].mean()
    for lam, points in last.groupby("lambda"):
        centre = means[SEEN][lam], means[UNSEEN][lam]
        left.errorbar(*centre, *_deviations(points), color=LOOKS[0].colour, capsize=1.5, lw=0.6)
    weights = left.scatter(means[SEEN], means[UNSEEN], c=means.index, cmap="viridis", s=16, zorder=3)
    figure.colorbar(weights, ax=left, label="λ", location="bottom", aspect=25)
    left.margins(0.12)
    _name(left, last["dataset"].iloc[0], last)
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
