"""R@1 over several things that are varied one at a time: a panel each, in which the others keep the paper's value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.parts.measured import best, plot_means, widen

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

METRIC = "R@1"


def varied(frame: pd.DataFrame, name: str, names: Mapping[str, str]) -> pd.DataFrame:
    """Rows of the best epoch in which all of ``names`` but ``name`` have the value of the paper."""
    rows = best(frame)
    for other in names:
        if other != name:
            rows = rows[rows[other] == rows[f"paper {other}"]]
    return rows


@dataclass(frozen=True)
class Panels:
    """How such a picture is laid out; calling it draws a frame of `lookalike.figures.parts.measured.read_measured`.

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
        from lookalike.figures.parts.style import LOOKS, REFERENCE, legend_below, panels

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
