"""Figures: shapes in units of their own, and the pose that brings them onto a canvas.

A figure is drawn facing right, without regard to the picture, and only then fitted to it: so every figure, whatever its
parts, stands where its pose says. Its points are rounded to whole pixels of a canvas that is ``SUPERSAMPLING`` times
finer than the picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw

from figurines.geometry import Points, points, rectangle, turned
from figurines.palette import Colour

SUPERSAMPLING = 3


@dataclass(frozen=True)
class Pose:
    """Where and how a figure stands in a picture.

    Attributes:
        centre: centre of the figure's frame, in pixels of the picture.
        extent: longer side of the frame in pixels.
        mirrored: whether the figure faces left.
        rotation: clockwise, in degrees.
        squeeze: width relative to a side view, below 1 for a figure that turns away.
    """

    centre: tuple[float, float]
    extent: float
    mirrored: bool = False
    rotation: float = 0.0
    squeeze: float = 1.0


@dataclass(frozen=True)
class Drawing:
    """A figure on its canvas; ``landmarks`` are in pixels of the canvas."""

    colour: Image.Image
    mask: Image.Image
    landmarks: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class _Shape:
    points: Points
    width: float  # 0 for an outline that is filled
    colour: Colour
    is_part: bool


class Figure:
    """Shapes from back to front, and named landmarks.

    ``fill`` and ``stroke`` add parts, which make up the silhouette; ``paint`` and ``trace`` add markings, which are cut
    off at the silhouette.
    """

    def __init__(self) -> None:
        self._shapes: list[_Shape] = []
        self._landmarks: dict[str, Points] = {}
        self._frame: Points | None = None

    def fill(self, outline: ArrayLike, colour: Colour) -> None:
        """Add a part: a filled outline."""
        self._shapes.append(_Shape(points(outline), 0.0, colour, is_part=True))

    def stroke(self, line: ArrayLike, width: float, colour: Colour) -> None:
        """Add a part: a line."""
        self._shapes.append(_Shape(points(line), width, colour, is_part=True))

    def paint(self, outline: ArrayLike, colour: Colour) -> None:
        """Add a marking: a filled outline."""
        self._shapes.append(_Shape(points(outline), 0.0, colour, is_part=False))

    def trace(self, line: ArrayLike, width: float, colour: Colour) -> None:
        """Add a marking: a line."""
        self._shapes.append(_Shape(points(line), width, colour, is_part=False))

    def frame(self, left: float, top: float, right: float, bottom: float) -> None:
        """Set what a pose fits to the picture, in place of the silhouette's bounding box."""
        self._frame = rectangle(left, top, right, bottom)

    def mark(self, name: str, point: ArrayLike) -> None:
        """Name a point."""
        self._landmarks[name] = points(point)

    def draw(self, width: int, height: int, pose: Pose) -> Drawing:
        """The figure in its pose, on the canvas of a picture of ``width`` x ``height`` pixels."""

        def posed(outline: Points) -> Points:
            return turned(outline * (-pose.squeeze if pose.mirrored else pose.squeeze, 1.0), pose.rotation)

        parts = np.concatenate([shape.points for shape in self._shapes if shape.is_part])
        framed = posed(parts if self._frame is None else self._frame)
        low, high = framed.min(axis=0), framed.max(axis=0)
        scale = SUPERSAMPLING * pose.extent / float((high - low).max())
        everything = np.concatenate([*(shape.points for shape in self._shapes), [*self._landmarks.values()]])
        placed = (posed(everything) - (low + high) / 2) * scale + SUPERSAMPLING * points(pose.centre)
        pixels = np.rint(placed).astype(np.int64)

        colours = Image.new("RGB", (SUPERSAMPLING * width, SUPERSAMPLING * height))
        mask = Image.new("L", colours.size)
        on_colours, on_mask = ImageDraw.Draw(colours), ImageDraw.Draw(mask)
        start = 0
        for shape in self._shapes:
            corners = pixels[start : start + len(shape.points)].ravel().tolist()
            start += len(shape.points)
            line_width = max(1, round(shape.width * scale)) if shape.width else 0
            _draw(on_colours, corners, line_width, shape.colour)
            if shape.is_part:
                _draw(on_mask, corners, line_width, 255)
        landmarks = {name: (float(x), float(y)) for name, (x, y) in zip(self._landmarks, placed[start:], strict=True)}
        return Drawing(colours, mask, landmarks)


def _draw(draw: ImageDraw.ImageDraw, corners: list[int], line_width: int, ink: Colour | int) -> None:
    if line_width:
        draw.line(corners, fill=ink, width=line_width, joint="curve" if len(corners) > 4 else None)
    else:
        draw.polygon(corners, fill=ink)
