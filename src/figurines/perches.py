"""What a figure stands on: branch, trunk, ground or water. All draw on the canvas in place."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from figurines.geometry import Points, moved, rounded, turned
from figurines.palette import COLOURS, darker, lighter
from figurines.scenery import pick

Rng = np.random.Generator
Place = tuple[float, float]


def corners(outline: Points) -> list[float]:
    """The outline in whole pixels, as Pillow takes it."""
    pixels: list[float] = np.rint(outline).ravel().tolist()
    return pixels


def leaf(x: float, y: float, length: float, degrees: float) -> Points:
    """Outline of a leaf that grows from a point in the direction of ``degrees``."""
    shape = rounded([(0, 0), (0.5, -0.32), (1, 0), (0.5, 0.32)], 1.0) * length
    return moved(turned(shape, degrees), x, y)


def branch(canvas: Image.Image, foot: Place, rng: Rng) -> None:
    """A branch under the feet, with a few leaves."""
    draw, (x, y), (width, height) = ImageDraw.Draw(canvas), foot, canvas.size
    thick, slope = rng.uniform((0.02 * height, -0.16), (0.04 * height, 0.16)).tolist()
    bark, green = pick(rng, "brown", "charcoal", "stone"), pick(rng, "forest", "olive", "mint")
    for middle, share, colour in ((y + thick, 2.0, darker(bark, 0.2)), (y + 0.65 * thick, 0.8, lighter(bark, 0.15))):
        ends = [0, round(middle - slope * x), width, round(middle + slope * (width - x))]
        draw.line(ends, fill=colour, width=max(1, round(share * thick)))
    for along, degrees, size in rng.uniform((0, 20, 0.08), (width, 160, 0.15), size=(5, 3)).tolist():
        draw.polygon(corners(leaf(along, y + thick + slope * (along - x), size * height, degrees)), fill=green)


def trunk(canvas: Image.Image, foot: Place, rng: Rng, *, to_the_right: bool) -> None:
    """A trunk beside the feet."""
    draw, bark = ImageDraw.Draw(canvas), pick(rng, "brown", "stone", "charcoal")
    gap, wide = 0.02 * canvas.width, canvas.width * float(rng.uniform(0.18, 0.3))
    left = foot[0] + gap if to_the_right else foot[0] - gap - wide
    draw.rectangle([round(left), 0, round(left + wide), canvas.height], fill=bark)
    for x, y, length in rng.uniform((left, 0, 8), (left + wide, canvas.height, 40), size=(16, 3)).tolist():
        draw.line([round(x), round(y), round(x), round(y + length)], fill=darker(bark, 0.25), width=2)


def shadow(canvas: Image.Image, box: tuple[int, int, int, int]) -> None:
    """A soft shadow on the ground, as wide as the box of left, top, right and bottom."""
    left, _, right, bottom = box
    depth = max(4, round(0.05 * (right - left)))
    shade = Image.new("L", canvas.size)
    ImageDraw.Draw(shade).ellipse([left, bottom - depth, right, bottom + depth], fill=90)
    soft = shade.reduce(3).filter(ImageFilter.GaussianBlur(1.5)).resize(canvas.size, Image.Resampling.BILINEAR)
    canvas.paste(COLOURS["black"], mask=soft)


def water(canvas: Image.Image, mask: Image.Image, backdrop: Image.Image, level: float, rng: Rng) -> None:
    """Covers the canvas below ``level`` with the backdrop and some ripples, and takes it out of the mask."""
    width, height = canvas.size
    top = min(round(level), height)  # a bird that wades below the picture is covered nowhere
    canvas.paste(backdrop.crop((0, top, width, height)), (0, top))
    mask.paste(0, (0, top, width, height))
    draw = ImageDraw.Draw(canvas)
    for x, dip, length in rng.uniform((0, 0, 0.1), (0.9, 0.06, 0.4), size=(6, 3)).tolist():
        y = round(level + dip * height)
        draw.line([round(x * width), y, round((x + length) * width), y], fill=lighter(COLOURS["sky"], 0.4), width=2)
