"""R@1 of every variant of a loss beside the full one, over the weight of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.measured import best, plot_means, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

FULL = "full"


def draw_variants(frame: pd.DataFrame) -> Picture:
    """A panel per variant with a pair of lines per data set: the full loss solid, the variant dashed."""
    from lookalike.figures.style import LOOKS, legend_below, panels

    points = best(frame)
    others = [name for name in points["variant"].unique() if name != FULL]
    rows = -(-len(others) // 2)
    figure, axes = panels(rows, 2, height=rows * 1.05 + 0.6, sharex=True, sharey=True)
    for panel, variant in zip(axes.flat, others, strict=False):
        for look, dataset in zip(LOOKS, points["dataset"].unique(), strict=False):
            own = points[points["dataset"] == dataset]
            name = shown(dataset, own["published"].iloc[0])
            for chosen, line, label in ((FULL, "-", f"{name}, full"), (variant, "--", f"{name}, variant")):
                series = own[own["variant"] == chosen]
                marker = look.marker if chosen == variant else ""
                plot_means(panel, series, "lambda", "R@1", look._replace(line=line, marker=marker), label)
        panel.set_title(variant.replace("_", " "))
    for panel in axes.flat[len(others) :]:
        panel.set_visible(False)
    for row in axes:
        row[0].set_ylabel("R@1 (%)")
    for panel in axes[-1]:
        panel.set_xlabel("λ")
    legend_below(figure, axes[0, 0])
    return figure
