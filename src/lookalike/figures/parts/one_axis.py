"""Metrics over one thing that is varied, a panel per metric and data set, a line per series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.parts.measured import best, plot_means, shown, widen

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Lines:
    """How such a picture is laid out; calling it draws a frame of `lookalike.figures.parts.measured.read_measured`.

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
        from lookalike.figures.parts.style import LOOKS, REFERENCE, legend_below, panels

        points = best(frame)
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
