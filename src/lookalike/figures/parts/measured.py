"""Finished metrics of many runs as one frame, and means over their seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookalike.figures.parts.form import Run
from lookalike.files import read_json
from lookalike.metrics.names import CHECKPOINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lookalike.figures.parts.style import Look

SPAN = 10.0  # points that an axis of percentages shows at least: a cut to less draws the noise of a seed as a trend
HIGHEST = 101.0  # per cent where such an axis ends, so that a marker at 100 is whole


def read_measured(runs: Sequence[Run], options: Mapping[str, Any]) -> pd.DataFrame:
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
            f"paper {name}": value[run.published] if isinstance(value, Mapping) else value
            for name, value in options.get("paper", {}).items()
        }
        for checkpoint in CHECKPOINTS:
            if missing := [name for name in options["metrics"] if name not in metrics[checkpoint]]:
                known = ", ".join(metrics[checkpoint])
                raise ValueError(f"{run.path} has no metric {missing[0]!r}; it has {known}")
            values = {name: metrics[checkpoint][name] for name in options["metrics"]}
            rows.append({**about, "checkpoint": checkpoint, **values})
    frame = pd.DataFrame(rows)
    return frame.drop_duplicates(list(frame.columns.difference(options["metrics"]))).reset_index(drop=True)


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the best epoch, which is what pictures and verdicts are made of."""
    return frame[frame["checkpoint"] == "best"]


def shown(dataset: str, published: str) -> str:
    """Name of a data set over a panel: the published one, and what stands for it."""
    return dataset if dataset == published else f"{published}: {dataset.removeprefix('figurines_')}"


def widen(panel: Axes) -> None:
    """Give an axis of percentages at least `SPAN` points around what it shows, of what percentages can be."""
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
