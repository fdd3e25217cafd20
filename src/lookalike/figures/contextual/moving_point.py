"""Loss and gradient of one point that moves along the unit circle from another class to its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from lookalike.figures.parts.form import Check, Figure, Run
from lookalike.methods.contextual.loss import contextual_loss, contrastive_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

QUARTER = 90.0  # degrees from the centre of the other class, (0, 1), to that of its own, (1, 0)
NAMES = {"contextual": "$L_{context}$", "contrastive": "$L_{contrast}$"}


def data(runs: Sequence[Run], options: Mapping[str, Any]) -> pd.DataFrame:
    """Loss, and pull towards the own class, at every position of the moving point.

    Args:
        runs: none.
        options: ``points`` in all, ``spread_degrees`` of a class, ``positions`` along the way, ``draws`` of the points,
            ``seed``; and of the losses ``k, eps, alpha, positive_margin, negative_margin``.

    Returns:
        ``loss, draw, position`` in degrees, ``value``, and ``pull``: minus the derivative by the position, in radians.

    Source: Supervised Metric Learning to Rank, Fig. 4.
    """
    generator = torch.Generator().manual_seed(options["seed"])
    rows = []
    for draw in range(options["draws"]):
        angles, labels = two_classes(options["points"], options["spread_degrees"], generator)
        for position in torch.linspace(0, QUARTER, options["positions"], dtype=torch.float64):
            for loss in NAMES:
                value, pull = loss_and_pull(loss, angles, labels, position, options)
                rows.append((loss, draw, float(position), value, pull))
    return pd.DataFrame(rows, columns=["loss", "draw", "position", "value", "pull"])


def two_classes(points: int, spread_degrees: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Angles in degrees, from (0, 1) on, and labels ``(points - 1,)`` of all points but the moving one.

    Both classes have ``points // 2`` points; the moving one belongs to class 1 around (1, 0).
    """
    labels = (torch.arange(points - 1) >= points // 2).long()
    angles = QUARTER * labels + spread_degrees * torch.randn(points - 1, generator=generator, dtype=torch.float64)
    return angles, labels


def loss_and_pull(
    loss: str, angles: Tensor, labels: Tensor, position: Tensor, options: Mapping[str, Any]
) -> tuple[float, float]:
    """One loss, and minus its derivative by the angle of the moving point alone, in radians.

    Args:
        loss: ``contextual`` or ``contrastive``.
        angles: ``(n - 1,)`` degrees of the points that stay.
        labels: ``(n - 1,)``.
        position: position of the moving point in degrees.
        options: options of the figure, see `data`.
    """
    moving = torch.deg2rad(position).requires_grad_()
    radians = torch.cat([moving[None], torch.deg2rad(angles)])  # (n,), the moving point first
    points = torch.stack([radians.sin(), radians.cos()], dim=1)  # (n, 2), (0, 1) at 0 degrees
    similarity, labels = points @ points.T, torch.cat([labels.new_ones(1), labels])
    if loss == "contextual":
        value = contextual_loss(similarity, labels, options["k"], options["eps"], alpha=options["alpha"])
    else:
        value = contrastive_loss(similarity, labels, options["positive_margin"], options["negative_margin"])
    (gradient,) = torch.autograd.grad(value, moving)
    return float(value.detach()), -float(gradient)


def draw(frame: pd.DataFrame) -> Picture:
    """Two panels, one per loss, each with loss and pull of the first draw and the range of all draws."""
    from lookalike.figures.parts.style import LOOKS, REFERENCE, panels

    figure, axes = panels(1, 2, height=1.95)
    for number, (loss, name) in enumerate(NAMES.items()):
        left, right = axes[0, number], axes[0, number].twinx()
        right.spines["right"].set_visible(True)
        for panel, column, look, label in ((left, "value", LOOKS[0], "loss"), (right, "pull", LOOKS[4], "pull")):
            table = frame[frame["loss"] == loss].pivot_table(index="position", columns="draw", values=column)
            panel.fill_between(table.index, table.min(axis=1), table.max(axis=1), color=look.colour, alpha=0.2, lw=0)
            line = "-" if column == "value" else "--"
            panel.plot(table.index, table[0], color=look.colour, linestyle=line, label=label)
            panel.tick_params(axis="y", colors=look.colour)
            panel.set_ylim(*_with_zero(table))
        right.axhline(0, color=REFERENCE, linewidth=0.6)
        right.grid(visible=False)
        left.set_title(name)
        left.set_xticks([0, 30, 60, 90])
        left.set_xlabel("position of the point (°)")
    axes[0, 0].set_ylabel("loss", color=LOOKS[0].colour)
    right.set_ylabel("pull to its class (per rad)", color=LOOKS[4].colour)
    handles = [axes[0, 0].lines[0], figure.axes[2].lines[0]]
    figure.legend(handles, ["loss (left axis)", "pull (right axis)"], loc="outside lower center", ncols=2)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the pull lasts until the loss is smallest, for every draw."""
    checked = []
    for loss, name in (("contextual", "L_context"), ("contrastive", "L_contrast")):
        draws = [curve.sort_values("position") for _, curve in frame[frame["loss"] == loss].groupby("draw")]
        minima = [int(curve["value"].to_numpy().argmin()) for curve in draws]
        ways = [curve[:minimum] for curve, minimum in zip(draws, minima, strict=True)]
        pulled = sum(bool((way["pull"] > 0).all()) for way in ways)
        least = min(way["pull"].min() for way in ways)
        reached = sum(curve["position"].iloc[minimum] for curve, minimum in zip(draws, minima, strict=True)) / len(
            draws
        )
        says = (
            f"the pull of {name} is positive at every position before the minimum of the loss in {pulled} of "
            f"{len(ways)} draws (smallest pull {least:.3g} per rad; minimum at {reached:.0f}° on average)"
        )
        claimed = loss == "contextual"
        checked.append(Check(says, pulled == len(ways) if claimed else None, claimed))
    return checked


def _with_zero(table: pd.DataFrame) -> tuple[float, float]:
    values = table.to_numpy()
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


MOVING_POINT = Figure(data, draw, checks)
