"""What stands in front of a figure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from figurines.geometry import Points, ellipse, moved, points, rectangle, turned
from figurines.palette import Colour
from figurines.perches import corners, leaf
from figurines.scenery import pick

Rng = np.random.Generator
Obstacle = tuple[list[Points], Colour]


def _pole(width: int, height: int, rng: Rng) -> Obstacle:
    x, thick = rng.uniform((0.15, 0.03), (0.85, 0.06)).tolist()
    pole = rectangle((x - thick) * width, -1, (x + thick) * width, height)
    return [pole], pick(rng, "slate", "brown", "stone", "charcoal")


def _twig(width: int, height: int, rng: Rng) -> Obstacle:
    x, y, lean = rng.uniform((0.1 * width, 0.15 * height, -40), (0.9 * width, 0.85 * height, 40)).tolist()
    stem = points([(-0.8, -0.012), (0.8, -0.006), (0.8, 0.006), (-0.8, 0.014)]) * height
    knots = moved(turned([(along, 0.0) for along in rng.uniform(-0.6, 0.6, 4) * height], lean), x, y)
    leaves = [
        leaf(float(knot[0]), float(knot[1]), 0.14 * height, lean + turn)
        for knot, turn in zip(knots, (50, -50, 40, -60), strict=True)
    ]
    return [moved(turned(stem, lean), x, y), *leaves], pick(rng, "olive", "forest", "brown")


def _bush(width: int, height: int, rng: Rng) -> Obstacle:
    x = 0.5 * width + 0.42 * height * float(rng.choice((-1, 1)))  # beside the middle of the picture, however wide it is
    size = height * float(rng.uniform(0.15, 0.28))
    centres = moved(rng.uniform((-1.2, -1.1), (1.2, 0.0), size=(7, 2)) * size, x, height)
    return [ellipse(centre, 0.6 * size) for centre in centres], pick(rng, "forest", "olive", "mint", "teal")


def _card(width: int, height: int, rng: Rng) -> Obstacle:
    x, y, lean = rng.uniform((0.15 * width, 0.15 * height, -25), (0.85 * width, 0.85 * height, 25)).tolist()
    card = turned(rectangle(-0.1, -0.07, 0.1, 0.07) * height, lean)
    return [moved(card, x, y)], pick(rng, "white", "lemon", "cream", "rose")


OBSTACLES: dict[str, Callable[[int, int, Rng], Obstacle]] = {
    "pole": _pole,
    "twig": _twig,
    "bush": _bush,
    "card": _card,
}


def occlude(canvas: Image.Image, mask: Image.Image, kind: str, rng: Rng) -> None:
    """Puts an obstacle in front of everything, in place, and takes what it covers out of the mask."""
    outlines, colour = OBSTACLES[kind](*canvas.size, rng)
    on_canvas, on_mask = ImageDraw.Draw(canvas), ImageDraw.Draw(mask)
    for outline in outlines:
        on_canvas.polygon(corners(outline), fill=colour)
        on_mask.polygon(corners(outline), fill=0)
