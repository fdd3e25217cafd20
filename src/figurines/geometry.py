"""Outlines of shapes: arrays ``(n, 2)`` of points, x to the right and y downwards."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Points = NDArray[np.float64]


def points(values: ArrayLike) -> Points:
    """The points as an array ``(n, 2)``."""
    return np.asarray(values, dtype=np.float64)


def ellipse(centre: ArrayLike, radius_x: float, radius_y: float | None = None) -> Points:
    """Outline of an ellipse; of a circle where ``radius_y`` is left out."""
    return arc(centre, radius_x, radius_x if radius_y is None else radius_y, 0, 360 - 360 / 32, 32)


def arc(centre: ArrayLike, radius_x: float, radius_y: float, start: float, stop: float, steps: int = 12) -> Points:
    """Points along an ellipse, clockwise from ``start`` to ``stop`` degrees from the right; filled, its segment."""
    return points(centre) + _on_circle(start, stop, steps) * (radius_x, radius_y)


@cache
def _on_circle(start: float, stop: float, steps: int) -> Points:
    angles = np.deg2rad(np.linspace(start, stop, steps))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def rectangle(left: float, top: float, right: float, bottom: float) -> Points:
    """The four corners."""
    return points([(left, top), (right, top), (right, bottom), (left, bottom)])


def rounded(corners: ArrayLike, radius: float = 0.08) -> Points:
    """The closed outline with its corners cut twice (Chaikin).

    A cut begins at a quarter of a side, but at most ``radius`` away from the corner.
    """
    outline = points(corners)
    for reach in (radius, radius / 3):
        sides = np.roll(outline, -1, axis=0) - outline
        lengths = np.maximum(np.hypot(sides[:, 0], sides[:, 1]), 1e-9)[:, None]
        step = sides * np.minimum(0.25, reach / lengths)
        outline = np.stack([outline + step, outline + sides - step], axis=1).reshape(-1, 2)
    return outline


def moved(outline: ArrayLike, x: float, y: float) -> Points:
    """The points, or the point, moved by ``x`` and ``y``."""
    return points(outline) + points((x, y))


def turned(outline: ArrayLike, degrees: float, pivot: tuple[float, float] = (0.0, 0.0)) -> Points:
    """The points turned clockwise, as seen, about ``pivot``."""
    angle, (left, top) = math.radians(degrees), pivot
    sine, cosine = math.sin(angle), math.cos(angle)
    before = points(outline)
    x, y = before[:, 0] - left, before[:, 1] - top
    after = np.empty_like(before)
    after[:, 0] = cosine * x - sine * y + left
    after[:, 1] = sine * x + cosine * y + top
    return after


def band(outline: Points, top: float, bottom: float) -> Points:
    """The part of a convex outline between the heights ``top`` and ``bottom``; a single point if there is none."""
    kept: list[tuple[float, float]] = []
    for (x0, y0), (x1, y1) in zip(outline.tolist(), np.roll(outline, -1, axis=0).tolist(), strict=True):
        crossings = [(level - y0) / (y1 - y0) for level in (top, bottom) if y1 != y0]
        for share in sorted([0.0, *crossings]):
            y = y0 + share * (y1 - y0)
            if 0 <= share <= 1 and top - 1e-9 <= y <= bottom + 1e-9:
                kept.append((x0 + share * (x1 - x0), y))
    return points(kept or outline[:1])
