"""The contextual loss over training: its part over the epochs, and as a surrogate of ranking.

The part over the epochs stands beside what the test images gain by it, for several lambda. As a surrogate of ranking it
is held against average precision, and followed without mini-batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import torch

from lookalike.workflow.report.figures.contextual.decomposability import Training, standardised, training
from lookalike.workflow.report.figures.parts.form import Check, Figure, NoOptions, Run
from lookalike.workflow.report.figures.parts.networks import read_embeddings
from lookalike.workflow.report.figures.parts.series import plot_means
from lookalike.workflow.report.figures.parts.trends import least, over_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

CLEAR = 0.5  # rank correlation from which one thing counts as going with another
CURVES = {"contextual": "$L_{context}$", "R@1": "test R@1 (%)"}
BATCHES, WHOLE = "mini-batches", "whole set"
LINEAR = 0.9  # correlation from which on a relation counts as about linear
MONOTONE = 0.05  # share of the way that an almost monotone curve may go upwards


def curves_data(runs: Sequence[Run], options: NoOptions) -> pd.DataFrame:
    """Histories of trainings with the contextual loss.

    Args:
        runs: histories, each with its ``lambda``.
        options: none.

    Returns:
        ``dataset, seed, lambda, epoch``; ``contextual``, the mean of the contextual part over the epoch's batches; and
        of the test pictures ``R@1`` as a fraction, missing in epochs between two measurements.

    Raises:
        ValueError: for a history without one of them.

    Source: Supervised Metric Learning to Rank, Fig. 15.
    """
    return read_histories(runs, list(CURVES))


def read_histories(runs: Sequence[Run], columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of the histories of runs, each run with its ``dataset, seed, lambda``.

    Raises:
        ValueError: for a history without one of them.
    """
    frames = []
    for run in runs:
        history = pd.read_csv(run.path)
        if missing := [name for name in columns if name not in history]:
            raise ValueError(f"{run.path} has no column {missing[0]!r}; it has {', '.join(history.columns)}")
        of_run = {"dataset": run.dataset, "seed": run.seed, "lambda": float(run.place["lambda"])}
        frames.append(pd.DataFrame({**of_run, **history[["epoch", *columns]]}))
    return pd.concat(frames, ignore_index=True)


def draw_curves(frame: pd.DataFrame) -> Picture:
    """Both curves over the epochs, a line per lambda, means over the seeds with error bars."""
    from matplotlib.ticker import MaxNLocator

    from lookalike.workflow.report.figures.parts.style import LOOKS, legend_below, panels

    figure, axes = panels(1, 2, height=2.1)
    for panel, (column, label) in zip(axes[0], CURVES.items(), strict=True):
        for look, (lam, points) in zip(LOOKS, frame.groupby("lambda"), strict=False):
            times = 1 if column == "contextual" else 100
            plot_means(panel, points, "epoch", column, look, f"λ = {lam:g}", times=times)
        panel.set_xlabel("epoch")
        panel.set_ylabel(label)
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    legend_below(figure, axes[0, 0], columns=3)
    return figure


def check_curves(frame: pd.DataFrame) -> list[Check]:
    """Whether the contrastive loss lowers the contextual part too, and whether a lower one goes with a higher R@1."""
    alone = frame[frame["lambda"] == 0].pivot_table(index="epoch", columns="seed", values="contextual")
    measured = frame.dropna(subset=["R@1"])
    ranks = measured.groupby("seed")[["contextual", "R@1"]].rank().assign(seed=measured["seed"])
    correlation = ranks.groupby("seed")[["contextual", "R@1"]].apply(lambda own: own["contextual"].corr(own["R@1"]))
    last = measured.groupby(["lambda", "epoch"])[["contextual", "R@1"]].mean().groupby("lambda").last()
    lowest, best = last["contextual"].idxmin(), last["R@1"].idxmax()
    return [
        over_seeds(
            f"the contrastive loss alone (λ = 0) lowers L_context too: {alone.iloc[0].mean():.4f} in the first epoch, "
            f"{alone.iloc[-1].mean():.4f} in the last",
            1 - alone.iloc[-1] / alone.iloc[0],
            unit="of its first value",
            margin=0,
        ),
        over_seeds(
            f"a lower L_context goes with a higher test R@1 (rank correlation at most {-CLEAR:g}): at the end "
            f"L_context is lowest at λ = {lowest:g}, R@1 highest at λ = {best:g}",
            -correlation - CLEAR,
            unit="to spare",
            margin=0,
        ),
    ]


CURVES_OVER_EPOCHS = Figure(curves_data, draw_curves, check_curves)


def convergence_data(runs: Sequence[Run], options: Training) -> pd.DataFrame:
    """Histories of trainings in mini-batches, and a linear embedding of fixed features trained on all at once.

    Args:
        runs: histories, each with its ``lambda``; and embeddings with those of the training pictures, the features.
        options: ``lams`` of the trainings on the whole set, and what
            ``lookalike.workflow.report.figures.contextual.decomposability.training`` takes.

    Returns:
        ``trained_on``, ``mini-batches`` or ``whole set``; ``dataset, seed, lambda``; ``step``, the epoch or the
        iteration; ``contextual``, the loss of the epoch's batches or of the whole set; and ``R@1, mAP`` of the test
        pictures as fractions, for the former.

    Raises:
        ValueError: for a history without one of the columns, or embeddings without training pictures.

    Source: Supervised Metric Learning to Rank, Fig. 3.
    """
    histories = read_histories([run for run in runs if run.reads == "history"], ["contextual", "R@1", "mAP"])
    histories = histories.rename(columns={"epoch": "step"})
    frames = [histories.assign(trained_on=BATCHES)]
    for run in runs:
        if run.reads == "embeddings":
            features, classes = read_embeddings(run, "train")
            features, labels = standardised(features.float()), torch.unique(classes, return_inverse=True)[1]
            for lam in options.lams:
                curve = pd.DataFrame(training(features, labels, "all", lam, run.seed, options))
                of_run = {"trained_on": WHOLE, "dataset": run.dataset, "seed": run.seed, "lambda": float(lam)}
                frames.append(pd.DataFrame({**of_run, "step": curve["iteration"], "contextual": curve["contextual"]}))
    return pd.concat(frames, ignore_index=True)


def draw_convergence(frame: pd.DataFrame) -> Picture:
    """On the left one trajectory per lambda, on the right the loss of the whole set over the iterations."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, panels

    figure, axes = panels(1, 2, height=2.5)
    left, right = axes[0]
    looks = dict(zip(sorted(frame["lambda"].unique()), LOOKS, strict=False))
    for lam, points in _measured(frame).groupby("lambda"):
        look = looks[lam]
        appearance = {"color": look.colour, "marker": look.marker, "linestyle": look.line}
        left.plot(1 - points["mAP"], points["contextual"], **appearance, label=f"{lam:g}")
        errors = {"xerr": points["mAP_std"], "yerr": points["contextual_std"]} if points["seeds"].min() > 1 else {}
        left.errorbar(1 - points["mAP"], points["contextual"], **errors, fmt="none", ecolor=look.colour, elinewidth=0.4)
        left.plot(1 - points["mAP"].iloc[-1:], points["contextual"].iloc[-1:], look.marker, color=look.colour, ms=5.5)
    left.set_xlabel("1 - mAP")
    left.set_ylabel("$L_{context}$")
    for lam, points in frame[frame["trained_on"] == WHOLE].groupby("lambda"):
        curve = points.groupby("step")["contextual"].mean()
        right.plot(curve.index, curve, color=looks[lam].colour, linestyle=looks[lam].line)
    right.set_xlabel("iteration")
    figure.legend(*left.get_legend_handles_labels(), title="λ", loc="outside lower center", ncols=4)
    left.set_title(BATCHES)
    right.set_title(WHOLE)
    return figure


def check_convergence(frame: pd.DataFrame) -> list[Check]:
    """Linearity of the left relation, and the share of their way that the right curves go upwards."""
    measured = frame[frame["trained_on"] == BATCHES].dropna(subset=["mAP"])
    correlation = measured.groupby("seed")[["contextual", "mAP"]].apply(
        lambda own: (1 - own["mAP"]).corr(own["contextual"])
    )
    of_training = measured.sort_values("step").groupby(["lambda", "seed"])[["contextual", "mAP"]]
    first, last = of_training.first(), of_training.last()
    falls = pd.DataFrame(  # shares of what both began with
        {
            "contextual": 1 - last["contextual"] / first["contextual"],
            "1 - mAP": 1 - (1 - last["mAP"]) / (1 - first["mAP"]),
        }
    )
    both = (falls.groupby("lambda").mean() > 0).all(axis=1)
    cases = falls.melt(var_name="what", value_name="fall", ignore_index=False)
    cases = cases.pivot_table(index=["lambda", "what"], columns="seed", values="fall")
    whole = frame[frame["trained_on"] == WHOLE]
    upwards = {lam: _upwards(whole[whole["lambda"] == lam]) for lam in whole["lambda"].unique().tolist()}
    highest, lowest = max(upwards), min(upwards)
    return [
        over_seeds(
            f"L_context is about linear in 1 - mAP: correlation {correlation.mean():.2f} (at least {LINEAR:g}) over "
            f"the measured epochs of {measured['lambda'].nunique()} trainings",
            correlation - LINEAR,
            unit="to spare",
            margin=0,
        ),
        least(
            cases,
            f"trainings run from upper right to bottom left: {int(both.sum())} of {len(both)} lower both between their "
            "first and last measured epoch",
            unit="of the first value, in the smallest fall of all",
            margin=0,
        ),
        over_seeds(
            f"without mini-batches L_context decreases almost monotonically at λ = {highest:g}: "
            f"{100 * upwards[highest].mean():.1f} % of its way goes upwards (limit {100 * MONOTONE:.0f} %)",
            100 * (MONOTONE - upwards[highest]),
            unit="points to spare",
            margin=0,
        ),
        over_seeds(
            f"at λ = {lowest:g} it is noisier: {100 * upwards[lowest].mean():.1f} % of its way goes upwards",
            100 * (upwards[lowest] - upwards[highest]),
            margin=0,
        ),
    ]


def _measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Means and standard deviations over the seeds at the epochs in which the test pictures were searched."""
    points = frame[frame["trained_on"] == BATCHES].dropna(subset=["mAP"])
    groups = points.groupby(["lambda", "step"])
    return groups.agg(
        contextual=("contextual", "mean"),
        contextual_std=("contextual", "std"),
        mAP=("mAP", "mean"),
        mAP_std=("mAP", "std"),
        seeds=("seed", "size"),
    ).reset_index()


def _upwards(points: pd.DataFrame) -> pd.Series[float]:
    """Share of all changes of the loss from step to step that are rises, by size, for each seed."""
    changes = points.assign(change=points.groupby(["dataset", "seed"])["contextual"].diff()).dropna(subset=["change"])
    sizes = changes.assign(upwards=changes["change"].clip(lower=0), all=changes["change"].abs())
    sums = sizes.groupby("seed")[["upwards", "all"]].sum()
    return sums["upwards"] / sums["all"]


CONVERGENCE = Figure(convergence_data, draw_convergence, check_convergence)
