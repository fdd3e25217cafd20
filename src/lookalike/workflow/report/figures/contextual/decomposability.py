"""Gap between a batch and the whole training set, for a linear embedding of fixed features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import torch
from torch import Tensor, nn

from lookalike.methods.contextual.loss import contextual_loss, contrastive_loss
from lookalike.methods.contextual.products import cosine_similarity
from lookalike.metrics.retrieval import retrieval_metrics
from lookalike.sampling.samplers.classes import BalancedSampler
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import read_embeddings
from lookalike.workflow.report.figures.parts.series import plot_means, widen
from lookalike.workflow.report.figures.parts.trends import best_within, highest, over_seeds
from lookalike.workflow.report.statistics.decisions import MARGINS
from lookalike.workflow.settings.model import Count, Model, Natural, Number, Rate, Share, Some

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

CURVES = {"R@1": "R@1 (%)", "MAP@R": "MAP@R (%)", "contextual": "$L_{context}$"}
ALL_RIGHT = 0.995


class Training(Model):
    """How a linear embedding of features is trained."""

    lams: Some[Share]
    iterations: Natural
    measured_every: Count
    embedding_dim: Count
    lr: Rate
    eps: Number
    alpha: Number
    positive_margin: Number
    negative_margin: Number


class Options(Training):
    """Of the figure."""

    per_class: Some[Count | Literal["all"]]


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Retrieval among the training pictures while a linear embedding of their features is trained.

    Args:
        runs: embeddings with those of the training pictures, which are the features.
        options: ``lams``; pictures ``per_class`` in a batch of all classes, each a number, ``all`` for the whole set;
            ``iterations`` and ``measured_every``; ``embedding_dim``, ``lr``, ``eps``, ``alpha``, ``positive_margin``,
            ``negative_margin``.

    Returns:
        ``dataset, seed, lam, batch_size, whole, iteration`` and, on the whole training set, ``R@1, MAP@R`` as fractions
        and ``contextual``, the loss at the median size of a class.

    Raises:
        ValueError: for a file without embeddings of the training pictures.

    Source: Supervised Metric Learning to Rank, Fig. 9.
    """
    rows = []
    for run in runs:
        features, classes = read_embeddings(run, "train")
        features, labels = standardised(features.float()), torch.unique(classes, return_inverse=True)[1]
        for per_class in options.per_class:
            for lam in options.lams:
                curve = training(features, labels, per_class, lam, run.seed, options)
                rows += [{"dataset": run.dataset, "seed": run.seed, "lam": lam, **point} for point in curve]
    return pd.DataFrame(rows)


def standardised(features: Tensor) -> Tensor:
    """Every feature with mean 0 and deviation 1, constant ones left out; a linear layer could do the same."""
    features = features - features.mean(dim=0)
    deviations = features.std(dim=0)
    return features[:, deviations > 0] / deviations[deviations > 0]


def training(
    features: Tensor, labels: Tensor, per_class: int | str, lam: float, seed: int, options: Training
) -> Iterator[dict[str, Any]]:
    """State of the whole training set at the start, every ``measured_every`` iterations, and at the end."""
    sizes = labels.bincount()  # (classes,)
    usual = int(sizes.median())
    k = usual if per_class == "all" else int(per_class)
    batch_size = len(labels) if per_class == "all" else k * len(sizes)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(features.shape[1], options.embedding_dim, generator=generator) / features.shape[1] ** 0.5
    embedding = nn.Parameter(weight)  # (features, D)
    optimiser = torch.optim.Adam([embedding], lr=options.lr)
    sampler = BalancedSampler(
        labels, k * len(sizes), per_class=k, classes_per_round=len(sizes), seed=seed, batches=options.iterations
    )
    whole = torch.arange(len(labels))
    batches = [whole] * options.iterations if per_class == "all" else [torch.as_tensor(rows) for rows in sampler]
    for iteration in range(options.iterations + 1):
        if iteration % options.measured_every == 0 or iteration == options.iterations:
            state = measured(features @ embedding.detach(), labels, usual, options)
            yield {"batch_size": batch_size, "whole": per_class == "all", "iteration": iteration, **state}
        if iteration == options.iterations:
            break
        rows = batches[iteration]
        similarity = cosine_similarity(features[rows] @ embedding)  # (B, B)
        loss = similarity.new_zeros(())
        if lam > 0:
            loss = loss + lam * contextual_loss(similarity, labels[rows], k, options.eps, alpha=options.alpha)
        if lam < 1:
            margins = options.positive_margin, options.negative_margin
            loss = loss + (1 - lam) * contrastive_loss(similarity, labels[rows], *margins)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


@torch.no_grad()
def measured(embeddings: Tensor, labels: Tensor, k: int, options: Training) -> dict[str, float]:
    """R@1, MAP@R and contextual loss of a set of embeddings that is searched for itself."""
    similarity = cosine_similarity(embeddings)  # (N, N)
    metrics = retrieval_metrics(similarity, labels, labels, ks=(1,), self_match=True)
    loss = float(contextual_loss(similarity, labels, k, options.eps, alpha=options.alpha))
    return {"R@1": metrics["R@1"], "MAP@R": metrics["MAP@R"], "contextual": loss}


def draw(frame: pd.DataFrame) -> Picture:
    """MAP@R at the end over lambda, and the curves of both extremes: a colour per batch size, a line per lambda."""
    from matplotlib.lines import Line2D

    from lookalike.workflow.report.figures.parts.style import LOOKS, panels

    figure, axes = panels(2, 2, height=3.7)
    frame = with_series(frame)
    last = frame[frame["iteration"] == frame["iteration"].max()]
    sizes = sorted(frame["series"].unique())
    colours = {size: look.colour for look, size in zip(LOOKS, sizes, strict=False)}
    lines: dict[float, Any] = {0.0: "--", 1.0: "-"}
    for look, size in zip(LOOKS, sizes, strict=False):
        plot_means(axes[0, 0], last[last["series"] == size], "lam", "MAP@R", look, "")
    widen(axes[0, 0])
    axes[0, 0].set_xlabel("λ")
    axes[0, 0].set_ylabel("MAP@R at the end (%)")
    for panel, (column, label) in zip((axes[0, 1], axes[1, 0], axes[1, 1]), CURVES.items(), strict=True):
        for size in (sizes[0], sizes[-1]):
            for lam, line in lines.items():
                rows = frame[(frame["series"] == size) & (frame["lam"] == lam)]
                curve = rows.groupby("iteration")[column].mean() * (1 if column == "contextual" else 100)
                panel.plot(curve.index, curve, color=colours[size], linestyle=line)
        panel.set_xlabel("iteration")
        panel.set_ylabel(label)
    pictures = frame.loc[frame["whole"], "batch_size"].max()
    named = [f"{size:g} in a batch" for size in sizes[:-1]] + [f"all {pictures} pictures"]
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle="", label=name)
        for look, name in zip(LOOKS, named, strict=False)
    ]
    handles += [Line2D([], [], color="black", linestyle=line, label=f"λ = {lam:g}") for lam, line in lines.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def with_series(frame: pd.DataFrame) -> pd.DataFrame:
    """With a column ``series``, the size of the batches, which sorts the whole set last, whatever its size."""
    return frame.assign(series=frame["batch_size"].astype(float).mask(frame["whole"], math.inf))


def checks(frame: pd.DataFrame) -> list[Check]:
    """The gap of the contextual loss between the smallest batch and the whole set, and which lambda is best there."""
    frame = with_series(frame)
    sizes = sorted(frame["series"].unique())
    last = frame[frame["iteration"] == frame["iteration"].max()]
    reached: Any = 100 * last.pivot_table(index=["series", "lam"], columns="seed", values="MAP@R")
    small, whole = reached.loc[(sizes[0], 1.0)], reached.loc[(sizes[-1], 1.0)]
    return [
        over_seeds(
            f"λ = 1 is worse with batches of {sizes[0]:g} than with the whole set: MAP@R {small.mean():.1f} % against "
            f"{whole.mean():.1f} %",
            whole - small,
            margin=MARGINS["MAP@R"],
        ),
        over_seeds(
            f"with the whole set λ = 1 comes to the right ranking: MAP@R {whole.mean():.1f} % (at least "
            f"{100 * ALL_RIGHT:g} %)",
            whole - 100 * ALL_RIGHT,
            unit="points to spare",
            margin=0,
        ),
        best_within(
            reached.loc[sizes[-1]],
            [1.0],
            f"λ = 1 is the best λ with the whole set, by MAP@R: {highest(reached.loc[sizes[-1]])}",
            margin=MARGINS["MAP@R"],
        ),
    ]


DECOMPOSABILITY = Figure(data, draw, checks)
