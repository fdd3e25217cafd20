"""By how much every variant of a loss changes R@1 of the full one, over the weights of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.parts.measured import best, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

FULL = "full"


def draw_variants(frame: pd.DataFrame) -> Picture:
    """A panel per data set: what each variant changes, a small mark for every lambda and a large one for their mean."""
    from lookalike.figures.parts.style import LOOKS, REFERENCE, panels

    points = best(frame)
    datasets = list(points["dataset"].unique())
    others = [name for name in points["variant"].unique() if name != FULL]
    figure, axes = panels(1, len(datasets), height=2.3, sharex=True, sharey=True)
    for panel, dataset in zip(axes[0], datasets, strict=True):
        of_dataset = points[points["dataset"] == dataset]
        reached = 100 * of_dataset.pivot_table(index="lambda", columns="variant", values="R@1")
        panel.axvline(0, color=REFERENCE, linestyle=":")
        for height, variant in enumerate(others):
            change = reached[variant] - reached[FULL]
            panel.plot(change, [height] * len(change), "o", color=LOOKS[0].colour, alpha=0.5, mew=0)
            panel.plot(change.mean(), height, "D", color=LOOKS[4].colour, markersize=4.5)
        panel.set_title(shown(dataset, of_dataset["published"].iloc[0]))
    axes[0, 0].set_yticks(range(len(others)), [name.replace("_", " ") for name in others])
    axes[0, 0].set_ylim(len(others) - 0.5, -0.5)
    figure.supxlabel("R@1 of the variant minus that of the full loss (points)", fontsize=7)
    return figure
