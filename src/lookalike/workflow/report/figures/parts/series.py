"""Metrics of many runs as one frame, means over their seeds, and panels over one thing that is varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd
from pydantic import Field

from lookalike.base.files import read_json
from lookalike.metrics.names import CHECKPOINTS, REPORTED
from lookalike.workflow.report.figures.parts.form import Run
from lookalike.workflow.settings.model import Model, Number, Some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

    from lookalike.workflow.report.figures.parts.style import Look

SPAN = 10.0  # points that an axis of percentages shows at least: a cut to less draws the noise of a seed as a trend
HIGHEST = 101.0  # per cent where such an axis ends, so that a marker at 100 is whole
METRIC = "R@1"


class Measured(Model):
    """Options of figures of metrics."""

    metrics: Some[str]
    paper: dict[str, Number | dict[str, Number]] = Field(default_factory=dict)


def read_measured(runs: Sequence[Run], options: Measured) -> pd.DataFrame:
    """Metrics of the best epoch, chosen on the test pictures as the papers do, and of the last one.

    Args:
        runs: metrics, each with its place in the figure. Runs of one place (several sweeps may pass through the same
            point) are kept once.
        options: ``metrics``, those wanted; ``paper``, by column of the place the value that the paper works with, a
            number or one per published data set.

    Returns:
        ``dataset, published, seed``, the columns of the place, a column ``paper <name>`` for each value of the paper,
        ``checkpoint`` and a column per metric, fractions.

    Raises:
        ValueError: for a broken file, or one without one of the metrics, naming it.
    """
    rows = []
    for run in runs:
        metrics = read_json(run.path)
        about = {"dataset": run.dataset, "published": run.published, "seed": run.seed, **run.place}
        about |= {
            f"paper {name}": value[run.published] if isinstance(value, dict) else value
            for name, value in options.paper.items()
        }
        for checkpoint in CHECKPOINTS:
            if missing := [name for name in options.metrics if name not in metrics[checkpoint]]:
                known = ", ".join(metrics[checkpoint])
                raise ValueError(f"{run.path} has no metric {missing[0]!r}; it has {known}")
            values = {name: metrics[checkpoint][name] for name in options.metrics}
            rows.append({**about, "checkpoint": checkpoint, **values})
    frame = pd.DataFrame(rows)
    return frame.drop_duplicates(list(frame.columns.difference(options.metrics))).reset_index(drop=True)


def reported(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the last epoch, from which pictures and verdicts are made."""
    return frame[frame["checkpoint"] == REPORTED]


def shown(dataset: str, published: str) -> str:
    """Name of a data set over a panel: the published one, and its stand-in."""
    return dataset if dataset == published else f"{published}: {dataset.removeprefix('figurines_')}"


def widen(panel: Axes) -> None:
    """Give an axis of percentages at least `SPAN` points around its values, between 0 and `HIGHEST`."""
    low, high = panel.get_ylim()
    if high - low < SPAN:
        low = min(max(0.0, (low + high - SPAN) / 2), HIGHEST - SPAN)
        panel.set_ylim(low, low + SPAN)


def plot_means(
    panel: Axes, points: pd.DataFrame, x: str, metric: str, look: Look, label: str, *, times: float = 100
) -> None:
    """A line of means over the seeds, with the standard deviation as error bars where there are several.

    Args:
        panel: to draw in.
        points: rows of a seed and a value of ``x`` each.
        x: column of the axis.
        metric: column of the values; rows without one are left out.
        look: of the line.
        label: of it.
        times: what values are multiplied by, 100 for percent.
    """
    points = points.dropna(subset=[metric])
    over_seeds = times * points.groupby(x)[metric].agg(["mean", "std"])
    several = len(set(points["seed"])) > 1
    panel.errorbar(
        over_seeds.index,
        over_seeds["mean"],
        yerr=over_seeds["std"] if several else None,
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        capsize=1.5,
        elinewidth=0.6,
        label=label,
    )


@dataclass(frozen=True)
class Lines:
    """Layout of a picture with panels by data set and metric; calling it draws a frame of `read_measured`.

    Attributes:
        x: column that is varied.
        label: of the axis.
        metrics: a column of panels each, unless there is one: then the data sets stand side by side.
        series: column that tells the lines apart, none for a single line.
        named: what a value of it is called in the legend.
        logarithmic: base of the axis, 0 for an even one.
        ticks: of the axis.
        panel_height: in inches.
    """

    x: str
    label: str
    metrics: Sequence[str]
    series: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    logarithmic: int = 0
    ticks: Sequence[float] = ()
    panel_height: float = 1.35

    def __call__(self, frame: pd.DataFrame) -> Picture:
        """Means over the seeds, with their deviation where there are several; dotted: the default."""
        from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, legend_below, panels

        points = reported(frame)
        datasets = list(points["dataset"].unique())
        cells = [(dataset, metric) for dataset in datasets for metric in self.metrics]
        columns = len(self.metrics) if len(self.metrics) > 1 else len(datasets)
        rows = len(cells) // columns
        figure, axes = panels(rows, columns, height=rows * self.panel_height + 0.65)
        for place, (panel, (dataset, metric)) in enumerate(zip(axes.flat, cells, strict=True)):
            own = points[points["dataset"] == dataset]
            lines = dict(list(own.groupby(self.series, sort=False))) if self.series else {"": own}
            for look, (name, line) in zip(LOOKS, lines.items(), strict=False):
                key = f"{name:g}" if isinstance(name, int | float) else str(name)
                label = self.named.get(key, key) or "measured"
                plot_means(panel, line, self.x, metric, look, label)
            if f"paper {self.x}" in own:
                value = own[f"paper {self.x}"].iloc[0]
                panel.axvline(value, color=REFERENCE, linestyle=":", linewidth=0.9, label="default")
            widen(panel)
            if self.logarithmic:
                panel.set_xscale("log", base=self.logarithmic)
            if self.ticks:
                panel.set_xticks(self.ticks, [f"{tick:g}" for tick in self.ticks])
                panel.minorticks_off()
            panel.set_title(shown(dataset, own["published"].iloc[0]))
            if place % columns == 0 or len(self.metrics) > 1:
                panel.set_ylabel(f"{metric} (%)")
            if place // columns == rows - 1:
                panel.set_xlabel(self.label)
        legend_below(figure, axes[0, 0], columns=4)
        return figure


def varied(frame: pd.DataFrame, name: str, names: Mapping[str, str]) -> pd.DataFrame:
    """Rows of the best epoch in which all of ``names`` but ``name`` have the value of the paper."""
    rows = reported(frame)
    for other in names:
        if other != name:
            rows = rows[rows[other] == rows[f"paper {other}"]]
    return rows


@dataclass(frozen=True)
class Panels:
    """Layout of a picture with a panel per varied column; calling it draws a frame of `read_measured`.

    Attributes:
        axes: columns that are varied, with the labels of their axes.
        series: column that tells the lines apart, none for a single line.
        named: what a value of it is called in the legend.
        percent: whether the values are shares, shown in percent.
    """

    axes: Mapping[str, str]
    series: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    percent: bool = False

    def __call__(self, frame: pd.DataFrame) -> Picture:
        """Means over the seeds, with their deviation where there are several; dotted: the value of the paper."""
        from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, legend_below, panels

        figure, axes = panels(1, len(self.axes), height=2.15, sharey=True)
        for panel, (name, label) in zip(axes[0], self.axes.items(), strict=True):
            points = varied(frame, name, self.axes)
            points = points.assign(**{name: points[name] * (100 if self.percent else 1)})
            lines = dict(list(points.groupby(self.series, sort=False))) if self.series else {"": points}
            for look, (series, line) in zip(LOOKS, lines.items(), strict=False):
                plot_means(panel, line, name, METRIC, look, self.named.get(str(series), "") or "measured")
            if not self.percent:
                value = points[f"paper {name}"].iloc[0]
                panel.axvline(value, color=REFERENCE, linestyle=":", linewidth=0.9, label="default")
            panel.set_xlabel(label)
        axes[0, 0].set_ylabel(f"{METRIC} (%)")
        widen(axes[0, 0])
        legend_below(figure, axes[0, 0], columns=3)
        return figure
