"""Reliability of the nodes of AVSL's graph, and its dependence on the pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import read_pictures, read_trained
from lookalike.workflow.report.figures.parts.trends import least
from lookalike.workflow.settings.model import Count, Model, Natural, Rate, Share

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

FEW = 0.1  # share up to which this project calls nodes few


class Options(Model):
    """Of the figure."""

    pictures: Count
    seed: Natural
    bins: Count
    unreliable: Share
    near_zero: Rate


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Histograms over nodes and pairs of test pictures, and over nodes.

    Args:
        runs: models, every one an AVSL.
        options: ``pictures`` on either side, all pairs of which count; ``seed`` of their draw; ``bins``;
            ``unreliable``, below which a reliability counts as such; ``near_zero``, the same of a coefficient's size.

    Returns:
        ``quantity`` (``reliability`` p or ``coefficient`` alpha), ``level`` from 2 on, ``dataset, seed``, ``value`` in
        the middle of a bin, its ``share`` of the histogram, and of the whole histogram the share ``below``; of
        reliabilities ``of_pair``, the share of their variance that differs between the pairs of a node, of coefficients
        ``steepest``, the largest size.

    Raises:
        ValueError: for a model that is no AVSL, or too few test pictures.

    Source: AVSL, Fig. 10.
    """
    frames = []
    for run in runs:
        trained, view, device = read_trained(run, AVSL)
        model = cast(AVSL, trained)
        pictures = read_pictures(run, view)
        count = options.pictures
        if 2 * count > len(pictures.rows):
            raise ValueError(f"{run.manifest} has {len(pictures.rows)} test pictures, {2 * count} are needed")
        drawn = torch.randperm(len(pictures.rows), generator=torch.Generator().manual_seed(options.seed))
        with torch.no_grad():
            seen = Representation.cat(
                [model(images) for images, _ in pictures.tensors(drawn[: 2 * count].tolist(), device)]
            )
            trust = model.explain(seen[:count], seen[count:]).reliability  # per level (count, count, r)
        for level in range(1, len(model.levels)):
            of_level = {"level": level + 1, "dataset": run.dataset, "seed": run.seed}
            reliable = trust[level].flatten().cpu().numpy()  # (count count r,)
            slopes = model.alpha[level - 1].detach().cpu().numpy()  # (r,)
            limits = min(0.0, float(slopes.min())), max(0.0, float(slopes.max()))
            flat = np.abs(slopes) < options.near_zero
            frames += [
                _histogram("reliability", reliable, (0, 1), reliable < options.unreliable, options.bins, of_level),
                _histogram("coefficient", slopes, limits, flat, options.bins, of_level),
            ]
            # Of all variance over nodes and pairs, what is left within the nodes.
            of_pair = float(trust[level].var(dim=(0, 1), correction=0).mean() / trust[level].var(correction=0))
            frames[-2]["of_pair"], frames[-1]["steepest"] = of_pair, float(np.abs(slopes).max())
    return pd.concat(frames, ignore_index=True)


def _histogram(
    quantity: str,
    values: NDArray[Any],
    limits: tuple[float, float],
    low: NDArray[np.bool_],
    bins: int,
    of_level: Mapping[str, Any],
) -> pd.DataFrame:
    counted, edges = np.histogram(values, bins, range=limits)
    columns = {"value": (edges[1:] + edges[:-1]) / 2, "share": counted / len(values), "below": low.mean()}
    return pd.DataFrame({"quantity": quantity, **of_level, **columns})


def draw(frame: pd.DataFrame) -> Picture:
    """Reliability on the left, coefficient on the right, a row per level, of the first seed."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, panels

    levels = sorted(frame["level"].unique())
    figure, axes = panels(len(levels), 2, height=1.05 * len(levels) + 0.4, sharex="col")
    titles = {"reliability": "reliability p", "coefficient": "coefficient α"}
    for column, (quantity, title) in zip(axes.T, titles.items(), strict=True):
        for panel, level in zip(column, levels, strict=True):
            rows = frame[(frame["quantity"] == quantity) & (frame["level"] == level)]
            bars = rows[rows["seed"] == rows["seed"].min()]
            width = bars["value"].diff().median()
            panel.bar(bars["value"], 100 * bars["share"], width, color=LOOKS[0].colour, edgecolor="white", lw=0.2)
        column[-1].set_xlabel(title)
    for panel, level in zip(axes[:, 0], levels, strict=True):
        panel.set_ylabel(f"level {level}\nshare (%)")
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether few nodes are unreliable, and few coefficients near zero, on every level."""
    below = 100 * frame.pivot_table(index=["quantity", "level"], columns="seed", values="below")
    words = {
        "reliability": "nodes of a pair are unreliable",
        "coefficient": "coefficients lie near zero",
    }
    checked = []
    for quantity, what in words.items():
        shares: Any = below.loc[quantity]
        listed = ", ".join(f"{share:.1f} % on level {level}" for level, share in shares.mean(axis=1).items())
        says = f"few (at most {100 * FEW:.0f} %) {what}: {listed}"
        checked.append(least(100 * FEW - shares, says, unit="points to spare on the level with most", margin=0))
    of_level = frame.groupby("level")[["of_pair", "steepest"]].mean()
    listed = ", ".join(
        f"{100 * row['of_pair']:.2g} % on level {level}, where |α| is up to {row['steepest']:.2g}"
        for level, row in of_level.iterrows()
    )
    return [*checked, Check(f"of the variance of p over nodes and pairs the pair explains {listed}", claimed=False)]


HISTOGRAMS = Figure(data, draw, checks, example=True)
