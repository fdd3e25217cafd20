"""By how much every variant of a loss changes R@1 of the full one, over the weights of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lookalike.figures.parts.measured import best, shown

if TYPE_CHECKING:
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
