"""By how much every batch changes the edges of AVSL's graph, over a training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lookalike.workflow.report.figures.parts.form import Check, Figure, NoOptions, Run
from lookalike.workflow.report.figures.parts.trends import least

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MEASURE = "edge_change"


def data(runs: Sequence[Run], options: NoOptions) -> pd.DataFrame:
    """Mean relative change of the edges by a batch, in every epoch.

    Args:
        runs: histories of trainings, each with the ``momentum`` of its edges, 0 for none.
        options: none.

    Returns:
        ``momentum, dataset, seed, epoch, edge_change``.

    Raises:
        ValueError: for a history without ``edge_change``.

    Source: AVSL, Fig. 9.
    """
    frames = []
    for run in runs:
        history = pd.read_csv(run.path)
        if MEASURE not in history:
            raise ValueError(f"{run.path} has no column {MEASURE}; it has {', '.join(history.columns)}")
        of_run: dict[str, Any] = {"momentum": float(run.place["momentum"]), "dataset": run.dataset, "seed": run.seed}
        frames.append(history[["epoch", MEASURE]].assign(**of_run)[[*of_run, "epoch", MEASURE]])
    return pd.concat(frames, ignore_index=True)


def independent_change(momentum: float) -> float:
    """Change of edges with momentum over those without, if the edges of all batches were independent draws.

    An average ``w_t = m w_(t-1) + (1 - m) e_t`` of draws of variance 1 has variance ``(1 - m) / (1 + m)`` and steps of
    variance ``(1 - m)^2 2 / (1 + m)``, draws themselves steps of variance 2.

    Args:
        momentum: share m of the old edges, in [0, 1].
    """
    return (1 - momentum) / math.sqrt(1 + momentum)


def draw(frame: pd.DataFrame) -> Picture:
    """A line per momentum, mean over the seeds."""
    from matplotlib.ticker import LogLocator

    from lookalike.workflow.report.figures.parts.style import LOOKS, panels

    figure, axes = panels(1, 1, height=2.2)
    panel = axes[0, 0]
    for look, (momentum, rows) in zip(LOOKS, frame.groupby("momentum"), strict=False):
        curve = 100 * rows.groupby("epoch")[MEASURE].mean()
        label = str(momentum) if momentum else "none"
        panel.plot(curve.index, curve, color=look.colour, marker=look.marker, linestyle=look.line, label=label)
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.set_xlabel("epoch")
    panel.set_ylabel("change per batch (%)")
    panel.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(title="momentum", loc="outside lower center", ncols=4)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether every momentum changes the edges less than none, in every epoch."""
    curves: Any = frame.pivot_table(index=["momentum", "epoch"], columns="seed", values=MEASURE)
    means = curves.mean(axis=1).groupby("momentum").mean()
    checked = []
    for momentum in (float(value) for value in means.index[1:]):
        says = (
            f"edges are more stable with momentum {momentum:g} than without, in every epoch: a batch changes them by "
            f"{100 * means[momentum]:.2g} % against {100 * means[0.0]:.2g} %"
        )
        less = 1 - curves.loc[momentum] / curves.loc[0.0]
        checked.append(least(less, says, unit="of the change without it is saved, in the worst epoch", margin=0))
        says = (
            f"with momentum {momentum:g} the change is {means[momentum] / means[0.0]:.3f} of that without; any average "
            f"of independent batches would change by {independent_change(momentum):.3f} of it"
        )
        checked.append(Check(says, claimed=False))
    return checked


FLUCTUATION = Figure(data, draw, checks)
