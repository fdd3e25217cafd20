"""Ranking losses mixed with the contrastive one, each over the same grid: the grid of one, and all side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookalike.base.files import read_json
from lookalike.metrics.names import REPORTED
from lookalike.workflow.report.figures.parts.form import Check, Figure, NoOptions, Run
from lookalike.workflow.report.figures.parts.series import plot_means, widen
from lookalike.workflow.report.figures.parts.trends import best_within

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

METRICS = {"train_R@1": "train R@1 (%)", "R@1": "test R@1 (%)"}
POINT = ["loss", "lambda", "margin", "rate"]
NAMES = {
    "contextual": "Contextual",
    "roadmap": "ROADMAP",
    "smooth_ap": "Smooth-AP",
    "softbin_ap": "SoftBin-AP",
    "blackbox_ap": "Blackbox-AP",
}


def data(runs: Sequence[Run], options: NoOptions) -> pd.DataFrame:
    """R@1 among training and among test pictures, of the epoch that is best on the latter.

    Args:
        runs: metrics, with those of the training pictures; each with its ``loss``, the weight ``lambda`` of it, the
            positive ``margin`` of the contrastive rest, and the ``rate`` of learning.
        options: none.

    Returns:
        ``dataset, seed``, those four, ``train_R@1, R@1`` as fractions, and ``again``: whether an earlier point of the
        loss is the same training, as nothing reads the margin at lambda 1. Where all points that differ in the rate
        alone are the same, because the scale has one rate for all, ``rate`` is missing and one of them is kept.

    Raises:
        ValueError: for a file without metrics of the training pictures.

    Source: Supervised Metric Learning to Rank, Figs. 18-29.
    """
    rows = []
    for run in runs:
        metrics = read_json(run.path)[REPORTED]
        if missing := [name for name in METRICS if name not in metrics]:
            hint = "embed.training_pictures of its recipe must be true"
            raise ValueError(f"{run.path} holds no {missing[0]} of the last epoch; {hint}")
        point = {"loss": run.place["loss"], **{name: float(run.place[name]) for name in POINT[1:]}}
        of_run = {"dataset": run.dataset, "seed": run.seed, **point, "path": run.path}
        rows.append(of_run | {name: metrics[name] for name in METRICS})
    frame = pd.DataFrame(rows)
    apart = [name for name in ("dataset", "seed", *POINT) if name != "rate"]
    if frame.groupby(apart)["path"].nunique().max() == 1:
        frame = frame.drop_duplicates(apart).assign(rate=float("nan"))
    again = frame.duplicated(["dataset", "seed", "loss", "path"])
    return frame.drop(columns="path").assign(again=again)


def draw_grid(frame: pd.DataFrame) -> Picture:
    """A row of panels per rate, on the left the training pictures; a line per margin, over lambda."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, legend_below, panels

    rates = _rates(frame)
    figure, axes = panels(len(rates), 2, height=0.65 + 1.35 * len(rates), sharex=True, sharey=True)
    for row, rate in zip(axes, rates, strict=True):
        points_of_rate = frame if pd.isna(rate) else frame[frame["rate"] == rate]
        for panel, (metric, label) in zip(row, METRICS.items(), strict=True):
            for look, (margin, points) in zip(LOOKS, points_of_rate.groupby("margin"), strict=False):
                plot_means(panel, points, "lambda", metric, look, f"δ+ = {margin:g}")
            panel.set_ylabel(label)
            if not pd.isna(rate):
                panel.set_title(f"rate {rate:g}")
    for panel in axes[-1]:
        panel.set_xlabel("λ")
    widen(axes[0, 0])  # of all panels, which share it
    legend_below(figure, axes[0, 0], columns=3)
    return figure


def checks_grid(frame: pd.DataFrame) -> list[Check]:
    """Best and spread of the test R@1, about which nothing is claimed for one loss by itself."""
    points = _points(frame)
    tuned = points[(points["lambda"] > 0) & ~points["again"]]
    best = tuned.sort_values("R@1", ascending=False, kind="stable").iloc[0]
    summary = (
        f"test R@1 of {NAMES[best['loss']]} at λ > 0 is at best {_percent(best['R@1'])} ({_place(best)}; train R@1 "
        f"{_percent(best['train_R@1'])}), over the grid {_percent(tuned['R@1'].min())} to "
        f"{_percent(tuned['R@1'].max())}, median {_percent(tuned['R@1'].median())}"
    )
    alone = points.loc[points["lambda"] == 0, "R@1"]
    return [
        Check(summary, None, claimed=False),
        Check(
            f"the contrastive loss alone (λ = 0) reaches {_percent(alone.max())} at its best margin",
            None,
            claimed=False,
        ),
    ]


def draw_summary(frame: pd.DataFrame) -> Picture:
    """A panel per data set: the test R@1 of all points of a loss in one line, the best larger and with error bars."""
    from matplotlib.lines import Line2D

    from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, panels

    points = _points(frame)
    datasets, losses = list(points["dataset"].unique()), list(points["loss"].unique())
    figure, axes = panels(1, len(datasets), height=2.3, sharey=True)
    for panel, dataset in zip(axes[0], datasets, strict=True):
        of_dataset = points[points["dataset"] == dataset]
        panel.axvline(100 * of_dataset.loc[of_dataset["lambda"] == 0, "R@1"].max(), color=REFERENCE, linestyle=":")
        for height, loss in enumerate(losses):
            tuned = of_dataset[(of_dataset["loss"] == loss) & (of_dataset["lambda"] > 0)]
            if tuned.empty:
                continue
            look, reached, best = LOOKS[height], 100 * tuned["R@1"], tuned.loc[tuned["R@1"].idxmax()]
            panel.plot(reached, [height] * len(reached), look.marker, color=look.colour, ms=3, alpha=0.5, mew=0)
            panel.errorbar(
                100 * best["R@1"],
                height,
                xerr=None if pd.isna(best["deviation"]) else 100 * best["deviation"],
                fmt=look.marker,
                color=look.colour,
                markersize=5,
                capsize=1.5,
                elinewidth=0.6,
            )
        panel.set_title(dataset.removeprefix("figurines_"))
        panel.set_xlabel("test R@1 (%)")
    axes[0, 0].set_yticks(range(len(losses)), [NAMES[loss] for loss in losses])
    axes[0, 0].set_ylim(len(losses) - 0.5, -0.5)
    of_all: dict[str, Any] = {"color": REFERENCE, "marker": LOOKS[0].marker, "linestyle": ""}
    handles = [
        Line2D([], [], **of_all, markersize=3, alpha=0.5, mew=0, label="of the grid"),
        Line2D([], [], **of_all, markersize=5, label="the best"),
        Line2D([], [], color=REFERENCE, linestyle=":", label="contrastive alone"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.0)
    return figure


def checks_summary(frame: pd.DataFrame) -> list[Check]:
    """On every data set, whether the best point of the contextual loss is above that of every surrogate."""
    points = _points(frame)
    tuned = points[(points["lambda"] > 0) & ~points["again"]]
    checked = []
    for dataset, of_dataset in tuned.groupby("dataset", sort=False):
        best = of_dataset.groupby("loss")["R@1"].max().sort_values(ascending=False)
        own = frame[(frame["dataset"] == dataset) & (frame["lambda"] > 0) & ~frame["again"]].fillna({"rate": 0.0})
        of_seed: Any = 100 * own.pivot_table(index=POINT, columns="seed", values="R@1")
        ours = of_seed.index.get_level_values("loss") == "contextual"
        median = of_dataset.groupby("loss")["R@1"].median()
        listed = ", ".join(
            f"{NAMES[loss]} {_percent(best[loss])} ({_percent(median[loss])})" for loss in map(str, best.index)
        )
        checked.append(
            best_within(
                of_seed,
                of_seed.index[ours],
                f"on {dataset} the contextual loss at its best is above every AP surrogate at its best; best test R@1 "
                f"at λ > 0, in brackets the median: {listed}",
            )
        )
    return checked


def _rates(frame: pd.DataFrame) -> list[float]:
    return sorted(frame["rate"].unique())


def _points(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds, and the standard deviation of the test R@1."""
    groups = frame.groupby(["dataset", *POINT, "again"], sort=False, dropna=False)
    return groups[list(METRICS)].mean().assign(deviation=groups["R@1"].std()).reset_index()


def _place(point: pd.Series[Any]) -> str:
    margin = "" if point["lambda"] == 1 else f", δ+ = {point['margin']:g}"
    rate = "" if pd.isna(point["rate"]) else f", rate = {point['rate']:g}"
    return f"λ = {point['lambda']:g}{margin}{rate}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


SURROGATE_GRID = Figure(data, draw_grid, checks_grid)
SURROGATES = Figure(data, draw_summary, checks_summary)
