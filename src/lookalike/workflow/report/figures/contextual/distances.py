"""Distances between the test pictures, for each of several recipes, beside points spread evenly over the sphere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import read_embeddings
from lookalike.workflow.report.figures.parts.trends import over_seeds
from lookalike.workflow.settings.model import Count, Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

UNIFORM = "uniform"  # the row group of the even distribution
FARTHEST = 2.0  # of unit vectors


class Options(Model):
    """Of the figure."""

    bins: Count


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Histograms of the distances between all pairs of unit embeddings, of the best epoch.

    Args:
        runs: embeddings, each with the ``variant`` that it belongs to.
        options: ``bins`` over [0, 2].

    Returns:
        ``variant, dataset, seed``, ``distance`` at the middle of a bin, ``density`` per unit of distance, and of the
        whole histogram the ``mean`` of the distances and their standard deviation ``sd``. Rows with variant
        ``uniform`` and without a seed hold the density of an even distribution in as many dimensions.

    Raises:
        ValueError: for a file without embeddings of test pictures, or embeddings of several sizes.

    Source: Supervised Metric Learning to Rank, Fig. 12.
    """
    edges = np.linspace(0, FARTHEST, options.bins + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    frames, dims = [], set()
    for run in runs:
        embeddings = F.normalize(read_embeddings(run, "test")[0].double(), dim=1)
        distances = torch.pdist(embeddings).numpy()  # (N (N - 1) / 2,)
        dims.add(embeddings.shape[1])
        columns = {"distance": middles, "density": np.histogram(distances, edges, density=True)[0]}
        of_run = {"variant": run.place["variant"], "dataset": run.dataset, "seed": run.seed}
        frames.append(pd.DataFrame({**of_run, **columns, "mean": distances.mean(), "sd": distances.std()}))
    if len(dims) != 1:
        raise ValueError(f"embeddings of sizes {sorted(dims)} have no even distribution in common, one size is needed")
    density = even_density(middles, dims.pop())  # (bins,)
    mean = float((middles * density).sum() / density.sum())
    sd = math.sqrt(float(((middles - mean) ** 2 * density).sum() / density.sum()))
    even = pd.DataFrame({"variant": UNIFORM, "distance": middles, "density": density, "mean": mean, "sd": sd})
    return pd.concat([*frames, even], ignore_index=True).astype({"seed": "Int64"})


def even_density(distances: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Density of the distance between two random points of the unit sphere in ``dim`` dimensions.

    It is ``d^(dim - 2) (1 - d^2 / 4)^((dim - 3) / 2)`` up to a factor: the angle between them has density
    ``sin^(dim - 2)``, and ``d = 2 sin(angle / 2)``.

    Raises:
        ValueError: if ``dim`` is below 3.
    """
    if dim < 3:
        raise ValueError(f"dim={dim} is below 3")
    logarithm = (dim - 2) * np.log(distances) + (dim - 3) / 2 * np.log1p(-(distances**2) / 4)
    log_factor = math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2) - math.log(math.pi) / 2
    density: NDArray[np.float64] = np.exp(logarithm + log_factor)
    return density


def draw(frame: pd.DataFrame) -> Picture:
    """A panel per variant: its histogram, the mean of all seeds, and the even distribution."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, legend_below, panels

    even = frame[frame["variant"] == UNIFORM]
    variants = [name for name in frame["variant"].unique() if name != UNIFORM]
    figure, axes = panels(1, len(variants), height=2.0, sharey=True)
    for panel, variant in zip(axes[0], variants, strict=True):
        rows = frame[frame["variant"] == variant]
        density = rows.groupby("distance")["density"].mean()
        panel.fill_between(
            density.index, density, step="mid", color=LOOKS[0].colour, alpha=0.75, lw=0, label="measured"
        )
        panel.plot(even["distance"], even["density"], color=LOOKS[2].colour, linestyle="--", label="even")
        panel.axvline(rows["mean"].mean(), color=REFERENCE, linestyle=":", label="mean measured")
        panel.set_title(variant)
        panel.set_xlim(0, FARTHEST)
        panel.set_xticks([0, 0.5, 1, 1.5, 2])
        panel.set_xlabel("distance of two pictures")
    axes[0, 0].set_ylabel("density")
    legend_below(figure, axes[0, 0], columns=3)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the second variant has larger distances than the first, which use more of the space."""
    variants = [name for name in frame["variant"].unique() if name != UNIFORM]
    mean, sd = (frame.groupby("variant")[column].mean() for column in ("mean", "sd"))
    of_seed = frame[frame["variant"] != UNIFORM].pivot_table(index="variant", columns="seed", values="mean")
    first, second = variants[0], variants[-1]
    says = (
        f"pictures lie farther apart with {second} (mean distance {mean[second]:.3f}, deviation {sd[second]:.3f}) than "
        f"with {first} ({mean[first]:.3f}, {sd[first]:.3f}); evenly spread they would lie {mean[UNIFORM]:.3f} apart"
    )
    return [over_seeds(says, of_seed.loc[second] - of_seed.loc[first], unit="in distance", margin=0)]


DISTANCES = Figure(data, draw, checks)
