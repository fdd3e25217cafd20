"""Bounds of AVSL's sensitivities, and of the overall distance, for all pairs of two groups of images at once.

The overall distance of a pair is a weighted sum of its nodes, `sum lambda delta`, whose weights depend on the pair
through the reliabilities alone. Over a group of queries and one of gallery items the product of two statistics lies in
an interval, hence so does each reliability (the sigmoid is monotone), and, from the top down, each weight: that of a
node is its reliability times what arrives, and what is passed on is the edges times the rest.

With ``w`` the middle of a weight's interval and ``h`` half its width, and unit vectors ``u``,

    | d - sum w delta |  <=  sum h delta  <=  2 (sum h u_q^2 + sum h u_g^2)

so one matrix product for the sum in the middle, and a number per image, bound every distance of the two groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lookalike.methods.avsl.graph import Images, Step

# Relative to what is summed: some thousand operations of float64, each off by 2^-53, lie far below it.
ROUNDING = 1e-11


class Weights(NamedTuple):
    """Intervals of all weights, L levels one after the other: middles ``(L r,)`` and half widths, float64."""

    middle: Tensor
    half: Tensor
    levels: int


def extremes(images: Images) -> list[Tensor]:
    """Least and largest statistic of each node, per level ``(2, r)``."""
    return [torch.stack(statistics.aminmax(dim=0)) for statistics in images.statistics]


def weight_intervals(
    query: Sequence[Tensor], gallery: Sequence[Tensor], steps: Sequence[Step], scale: float
) -> Weights:
    """Intervals that hold the weights of every pair of a query and a gallery item, rounding included.

    Args:
        query: `extremes` of the queries, float64.
        gallery: of the gallery items.
        steps: levels above the lowest, float64.
        scale: factor of the sigmoid's argument.
    """
    low = high = torch.ones_like(query[0][0])  # what arrives at the nodes of the top
    levels: list[tuple[Tensor, Tensor]] = []
    for level in range(len(steps), 0, -1):
        step = steps[level - 1]
        trust_low, trust_high = _reliability_interval(query[level], gallery[level], step, scale)
        levels.append(_scaled(low, high, trust_low, trust_high))
        low, high = _passed_on(*_scaled(low, high, 1 - trust_high, 1 - trust_low), step.edges)
    levels.append((low, high))
    lows, highs = (torch.cat(side) for side in zip(*reversed(levels), strict=True))
    slack = ROUNDING * torch.maximum(lows.abs(), highs.abs())
    return Weights((lows + highs) / 2, (highs - lows) / 2 + slack, len(levels))


def _reliability_interval(query: Tensor, gallery: Tensor, step: Step, scale: float) -> tuple[Tensor, Tensor]:
    """Least and largest reliability ``(r,)`` of the nodes of a level, from the extremes of their statistics."""
    ends = torch.stack([one * other for one in query for other in gallery])
    slopes = scale * (step.alpha * torch.stack(ends.aminmax(dim=0)) + step.beta)
    low, high = slopes.aminmax(dim=0)
    # A sigmoid of a rounded argument: the argument's own error is relative to its parts.
    off = ROUNDING * scale * (step.alpha.abs() * ends.abs().amax(dim=0) + step.beta.abs() + 1)
    return torch.sigmoid(low - off), torch.sigmoid(high + off)


def _scaled(low: Tensor, high: Tensor, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """Interval of a product with a factor between ``least`` and ``most``, both at least 0."""
    return torch.minimum(low * least, low * most), torch.maximum(high * least, high * most)


def _passed_on(low: Tensor, high: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Interval of ``x @ edges`` for ``x`` between ``low`` and ``high``, edges of either sign."""
    positive, negative = edges.clamp(min=0), edges.clamp(max=0)
    return low @ positive + high @ negative, high @ positive + low @ negative


def pair_bounds(query: Tensor, gallery: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """Sum in the middle and its largest error, ``(n,)`` float64 each, of n pairs.

    Nodes are taken from float32, where each is off by at most ``2^-20`` of the squares of both numbers, and summed in
    float64. Those squares sum to at most 2 a level.

    Args:
        query: unit vectors of n images, as of `Flat`, ``(n, L r)``.
        gallery: likewise.
        weights: of groups that hold all these pairs.
    """
    columns = torch.stack([weights.middle, weights.half], dim=1)  # (L r, 2)
    sums = (query - gallery).square_().double() @ columns  # (n, 2)
    # Each level counts with the largest weight of all, which is enough.
    largest = (weights.middle.abs() + weights.half).max() * weights.levels
    return sums[:, 0], sums[:, 1] + 2.0**-19 * largest + ROUNDING * sums[:, 0].abs()


class Flat(NamedTuple):
    """Images as the product takes them, levels side by side: unit vectors ``(N, L r)`` float32, and their squares."""

    units: Tensor
    squares: Tensor


def flat(images: Images) -> Flat:
    """Images in float32."""
    units = torch.cat([each.float() for each in images.units], dim=1)
    return Flat(units, units.square())


def block_bounds(query: Flat, gallery: Flat, weights: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """Sums in the middle of all pairs by one product in float32, and a largest error as a sum of one part per side.

    Rounding is part of the error. A sum of n products in float32 is off by at most ``(n + 3) 2^-24`` times the sum of
    the absolute values (Higham, "Accuracy and Stability of Numerical Algorithms", Eq. 3.5, and a unit for rounding each
    factor). Here three such sums meet, whose absolute values the weighted squares of both sides bound.

    Args:
        query: Q images.
        gallery: G images.
        weights: of the two groups.

    Returns:
        ``(Q, G)`` float32, and ``(Q,)`` and ``(G,)`` float64: the distance of a pair is off by at most the sum of its
        two.
    """
    columns = torch.stack([weights.middle, weights.half, weights.middle.abs()], dim=1).float()
    query_sums, gallery_sums = query.squares @ columns, gallery.squares @ columns  # (N, 3)
    middle = (query.units * columns[:, 0]) @ gallery.units.T
    middle.mul_(-2).add_(query_sums[:, :1]).add_(gallery_sums[:, 0])
    units = (2 * len(columns) + 32) * 2.0**-24
    errors = [
        (2 * sums[:, 1].double() + units * sums[:, 2].double()) * (1 + units) for sums in (query_sums, gallery_sums)
    ]
    return middle, errors[0], errors[1]


def exact_distance(query: Images, gallery: Images, steps: Sequence[Step], scale: float) -> Tensor:
    """Overall distance ``(n,)`` of n pairs: the i-th query and the i-th gallery item, over the whole graph."""
    nodes = (query.units[0] - gallery.units[0]).square()
    for level in range(1, len(steps) + 1):
        step = steps[level - 1]
        # As `reliability` rounds it: equal images are to have equal distances, whoever evaluates them.
        slope = scale * step.alpha * query.statistics[level]
        trust = torch.sigmoid(torch.addcmul(scale * step.beta, slope, gallery.statistics[level]))
        nodes = torch.lerp(step.predict(nodes), (query.units[level] - gallery.units[level]).square(), trust)
    return nodes.sum(dim=-1)
