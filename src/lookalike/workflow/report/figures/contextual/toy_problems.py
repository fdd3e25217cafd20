"""Two problems in the plane: one point that moves between classes, and concentric circles to tell apart.

Loss and gradient of the point are shown as it moves along the unit circle from another class to its own. Embeddings of
the circles are learnt from the neighbour mask alone with its overridden gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lookalike.methods.contextual.loss import contextual_loss, contrastive_loss
from lookalike.metrics.ranking import stable_topk
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.trends import over_seeds
from lookalike.workflow.settings.model import Count, Model, Natural, Number, Rate, Some

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

QUARTER = 90.0  # degrees from the centre of the other class, (0, 1), to that of its own, (1, 0)
NAMES = {"contextual": "$L_{context}$", "contrastive": "$L_{contrast}$"}
CIRCLES = 5


class MovingPoint(Model):
    """Options of the figure with a moving point."""

    points: Count
    spread_degrees: Rate
    positions: Count
    draws: Count
    seed: Natural
    k: Count
    eps: Number
    alpha: Number
    positive_margin: Number
    negative_margin: Number


def moving_point_data(runs: Sequence[Run], options: MovingPoint) -> pd.DataFrame:
    """Loss, and pull towards the own class, at every position of the moving point.

    Args:
        runs: none.
        options: ``points`` in all, ``spread_degrees`` of a class, ``positions`` along the way, ``draws`` of the points,
            ``seed``; and of the losses ``k, eps, alpha, positive_margin, negative_margin``.

    Returns:
        ``loss, draw, position`` in degrees, ``value``, and ``pull``: minus the derivative by the position, in radians.

    Source: Supervised Metric Learning to Rank, Fig. 4.
    """
    generator = torch.Generator().manual_seed(options.seed)
    rows = []
    for draw_moving_point in range(options.draws):
        angles, labels = two_classes(options.points, options.spread_degrees, generator)
        for position in torch.linspace(0, QUARTER, options.positions, dtype=torch.float64):
            for loss in NAMES:
                value, pull = loss_and_pull(loss, angles, labels, position, options)
                rows.append((loss, draw_moving_point, float(position), value, pull))
    return pd.DataFrame(rows, columns=["loss", "draw", "position", "value", "pull"])


def two_classes(points: int, spread_degrees: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Angles in degrees, from (0, 1) on, and labels ``(points - 1,)`` of all points but the moving one.

    Both classes have ``points // 2`` points; the moving one belongs to class 1 around (1, 0).
    """
    labels = (torch.arange(points - 1) >= points // 2).long()
    angles = QUARTER * labels + spread_degrees * torch.randn(points - 1, generator=generator, dtype=torch.float64)
    return angles, labels


def loss_and_pull(
    loss: str, angles: Tensor, labels: Tensor, position: Tensor, options: MovingPoint
) -> tuple[float, float]:
    """One loss, and minus its derivative by the angle of the moving point alone, in radians.

    Args:
        loss: ``contextual`` or ``contrastive``.
        angles: ``(n - 1,)`` degrees of the points that stay.
        labels: ``(n - 1,)``.
        position: position of the moving point in degrees.
        options: options of the figure, see `moving_point_data`.
    """
    moving = torch.deg2rad(position).requires_grad_()
    radians = torch.cat([moving[None], torch.deg2rad(angles)])  # (n,), the moving point first
    points = torch.stack([radians.sin(), radians.cos()], dim=1)  # (n, 2), (0, 1) at 0 degrees
    similarity, labels = points @ points.T, torch.cat([labels.new_ones(1), labels])
    if loss == "contextual":
        value = contextual_loss(similarity, labels, options.k, options.eps, alpha=options.alpha)
    else:
        value = contrastive_loss(similarity, labels, options.positive_margin, options.negative_margin)
    (gradient,) = torch.autograd.grad(value, moving)
    return float(value.detach()), -float(gradient)


def draw_moving_point(frame: pd.DataFrame) -> Picture:
    """Two panels, one per loss, each with loss and pull of the first draw and the range of all draws."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, REFERENCE, panels

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


def check_moving_point(frame: pd.DataFrame) -> list[Check]:
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


MOVING_POINT = Figure(moving_point_data, draw_moving_point, check_moving_point)


class Rings(Model):
    """Options of the figure with rings."""

    noise: Some[Rate]
    points: Count
    k: Count
    eps: Number
    alpha: Number
    hidden: Count
    steps: Natural
    lr: Rate
    neighbours: Count
    seed: Natural
    draws: Count


def rings_data(runs: Sequence[Run], options: Rings) -> pd.DataFrame:
    """Embeddings of clean points after training on noisy ones.

    Args:
        runs: none.
        options: ``noise`` levels, ``points`` per circle, ``k``, ``eps``, ``alpha``, ``hidden`` units, ``steps``,
            ``lr``, ``neighbours`` of the accuracy, ``seed`` and the number of ``draws``, each of points and network.

    Returns:
        ``noise, draw``, their ``accuracy`` of nearest neighbours after and ``accuracy_untrained`` before training, and
        of the first draw ``circle, x, y`` of every clean point in the embedding.

    Source: Supervised Metric Learning to Rank, Fig. 11 and Eq. 32.
    Differs: distances are those of the plane. On unit vectors, as elsewhere in the paper, two dimensions leave a circle
    to the five classes, on which this loss alone draws all of them together: it looks at the order of distances only.
    """
    frames = []
    for level, draw_rings in product(options.noise, range(options.draws)):
        # The same points and network at every level.
        generator = torch.Generator().manual_seed(options.seed + draw_rings)
        points, circles = concentric(options.points, generator)
        clean, _ = concentric(options.points, generator)
        network = perceptron(options.hidden, generator)
        with torch.no_grad():
            before = neighbour_accuracy(network(clean), circles, options.neighbours)
        noisy = points + level * torch.randn(points.shape, generator=generator)  # (5 points, 2)
        train(network, noisy, circles, options, generator)
        with torch.no_grad():
            embeddings = network(clean)
            after = neighbour_accuracy(embeddings, circles, options.neighbours)
        row = {"noise": level, "draw": draw_rings, "accuracy": after, "accuracy_untrained": before}
        shown = {"circle": circles.numpy(), "x": embeddings[:, 0], "y": embeddings[:, 1]} if draw_rings == 0 else {}
        frames.append(pd.DataFrame({**row, **shown}, index=None if shown else [0]))
    return pd.concat(frames, ignore_index=True)


def concentric(points: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points ``(5 points, 2)`` on circles of radius 1 to 5 at random angles, and their circles ``(5 points,)``."""
    circles = torch.arange(CIRCLES).repeat_interleave(points)
    angles = 2 * math.pi * torch.rand(len(circles), generator=generator)
    return (circles + 1)[:, None] * torch.stack([angles.cos(), angles.sin()], dim=1), circles


def perceptron(hidden: int, generator: torch.Generator) -> nn.Sequential:
    """Three linear layers from two numbers to two, with ReLU between them."""
    sizes = (2, hidden, hidden, 2)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
        for parameter in linear.parameters():  # torch's default distribution, drawn from the generator
            nn.init.uniform_(parameter, -(inputs**-0.5), inputs**-0.5, generator=generator)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train(network: nn.Module, points: Tensor, circles: Tensor, options: Rings, generator: torch.Generator) -> None:
    """Minimise the neighbour mask's loss (Eq. 32) on batches of ``k`` points of every circle."""
    optimiser = torch.optim.Adam(network.parameters(), lr=options.lr)
    k, per_circle = options.k, len(points) // CIRCLES
    for _ in range(options.steps):
        rows = [circle * per_circle + torch.randperm(per_circle, generator=generator)[:k] for circle in range(CIRCLES)]
        batch = torch.cat(rows)  # (5 k,)
        similarity = 1 - squared_distance(network(points[batch])) / 2  # (5 k, 5 k), of unit vectors their cosine
        loss = contextual_loss(similarity, circles[batch], k, options.eps, alpha=options.alpha, variant="l1")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def squared_distance(embeddings: Tensor) -> Tensor:
    """Squared Euclidean distances ``(n, n)`` of ``(n, D)`` embeddings, with a gradient that is finite at 0."""
    return (embeddings[:, None] - embeddings).square().sum(dim=2)


def neighbour_accuracy(embeddings: Tensor, labels: Tensor, neighbours: int) -> float:
    """Share of points whose ``neighbours`` nearest others mostly have their label.

    Of labels that are equally frequent among the neighbours the smallest counts.
    """
    nearest = stable_topk(-squared_distance(embeddings).fill_diagonal_(torch.inf), neighbours)[1]  # (N, neighbours)
    votes = F.one_hot(labels[nearest], int(labels.max()) + 1).sum(dim=1)  # (N, classes)
    return float((votes.argmax(dim=1) == labels).double().mean())


def draw_rings(frame: pd.DataFrame) -> Picture:
    """A panel per noise level with the embeddings of the clean points, those of the first draw."""
    from lookalike.workflow.report.figures.parts.style import LOOKS, panels

    levels = sorted(frame["noise"].unique())
    figure, axes = panels(math.ceil(len(levels) / 2), 2, height=1.6 * math.ceil(len(levels) / 2) + 0.35)
    for panel, level in zip(axes.flat, levels, strict=False):
        shown = frame[(frame["noise"] == level) & (frame["draw"] == 0)]
        for circle, look in zip(range(CIRCLES), LOOKS, strict=False):
            points = shown[shown["circle"] == circle]
            panel.scatter(
                points["x"], points["y"], s=5, color=look.colour, marker=look.marker, lw=0, label=f"{circle + 1}"
            )
        panel.set_title(f"noise {level:g}: {100 * shown['accuracy'].iloc[0]:.0f} % right", pad=3)
        panel.set_box_aspect(1)
    for panel in axes[-1]:
        panel.set_xlabel("first coordinate")
    for panel in axes[:, 0]:
        panel.set_ylabel("second coordinate")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    appearance: dict[str, Any] = {"handletextpad": 0.1, "columnspacing": 0.8, "markerscale": 1.6}
    figure.legend(
        handles, labels, title="radius of the circle", loc="outside lower center", ncols=CIRCLES, **appearance
    )
    return figure


def check_rings(frame: pd.DataFrame) -> list[Check]:
    """Whether the neighbours are of one circle, far more often than by chance and than before training."""
    chance = 1 / frame["circle"].nunique()
    checked = []
    for level, rows in frame.groupby("noise"):
        draws = rows.groupby("draw")[["accuracy", "accuracy_untrained"]].first()
        after, before = draws.mean()
        says = (
            f"noise {level:g}: neighbours name the circle of {100 * after:.1f} % of the clean points, against "
            f"{100 * before:.1f} % before training ({100 * (after - before):+.1f} points) and {100 * chance:.0f} % by "
            "chance"
        )
        more = draws["accuracy"] - draws["accuracy_untrained"].clip(lower=chance)
        checked.append(over_seeds(says, 100 * more, unit="points above both"))
    return checked


RINGS = Figure(rings_data, draw_rings, check_rings)
