"""Backdrops out of focus: the places where figurines are met."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from figurines.palette import COLOURS, Colour, darker, lighter

Rng = np.random.Generator
Draw = ImageDraw.ImageDraw


def pick(rng: Rng, *names: str) -> Colour:
    """One of the named colours, a little lighter or darker."""
    colour = COLOURS[names[int(rng.integers(len(names)))]]
    share = float(rng.uniform(0, 0.3))
    return lighter(colour, share) if rng.random() < 0.5 else darker(colour, share)


def graded(width: int, height: int, top: Colour, bottom: Colour) -> Image.Image:
    """A vertical gradient."""
    ramp = np.linspace(0, 1, height)[:, None, None]
    rows = np.asarray(top) * (1 - ramp) + np.asarray(bottom) * ramp  # (H, 1, 3)
    return Image.fromarray(np.broadcast_to(np.rint(rows).astype(np.uint8), (height, width, 3)).copy())


def _sky(width: int, height: int, rng: Rng) -> Image.Image:
    scene = graded(
        width,
        height,
        lighter(pick(rng, "sky", "sky", "cobalt", "rose", "slate"), 0.3),
        lighter(pick(rng, "sky", "cream", "sand"), 0.5),
    )
    _blobs(ImageDraw.Draw(scene), rng, 4, (0, 0, width, height * 0.4), (4, 10), "white", "cream")
    return scene


def _blobs(
    draw: Draw, rng: Rng, count: int, area: tuple[float, float, float, float], sizes: tuple[float, float], *names: str
) -> None:
    left, top, right, bottom = area
    for x, y, radius in rng.uniform((left, top, sizes[0]), (right, bottom, sizes[1]), size=(count, 3)).tolist():
        draw.ellipse(
            [round(x - radius), round(y - 0.8 * radius), round(x + radius), round(y + 0.8 * radius)],
            fill=pick(rng, *names),
        )


def _foliage(width: int, height: int, rng: Rng) -> Image.Image:
    scene = graded(
        width, height, lighter(pick(rng, "mint", "sky", "olive", "cream")), pick(rng, "forest", "olive", "mint")
    )
    _blobs(ImageDraw.Draw(scene), rng, 14, (0, 0, width, height), (4, 13), "forest", "olive", "mint", "lemon", "teal")
    return scene.filter(ImageFilter.GaussianBlur(2.5))


def _meadow(width: int, height: int, rng: Rng) -> Image.Image:
    scene, horizon = _sky(width, height, rng), round(height * rng.uniform(0.25, 0.6))
    draw = ImageDraw.Draw(scene)
    _blobs(draw, rng, 6, (0, horizon - 3, width, horizon), (5, 11), "forest", "olive", "teal")
    draw.rectangle([0, horizon, width, height], fill=pick(rng, "olive", "forest", "ochre"))
    for x, y, lean, rise in rng.uniform((0, horizon, -3, 4), (width, height + 4, 3, 10), size=(30, 4)).tolist():
        draw.line([round(x), round(y), round(x + lean), round(y - rise)], fill=pick(rng, "olive", "forest", "mint"))
    _blobs(draw, rng, 7, (0, horizon + 4, width, height), (1, 2), "lemon", "white", "rose", "violet")
    return scene.filter(ImageFilter.GaussianBlur(1.2))


def _cliff(width: int, height: int, rng: Rng) -> Image.Image:
    scene = _sky(width, height, rng)
    draw, top = ImageDraw.Draw(scene), rng.uniform(0.62, 0.8) * height
    for _ in range(5):
        x, y = rng.uniform(-10, width), top + rng.uniform(-4, 16)
        ledge = [(x - 16, height), (x - 12, y + 3), (x + 2, y - 1), (x + 24, y), (x + 30, height)]
        draw.polygon([(round(a), round(b)) for a, b in ledge], fill=pick(rng, "stone", "slate", "sand", "brown"))
    return scene.filter(ImageFilter.GaussianBlur(1.2))


def _pond(width: int, height: int, rng: Rng) -> Image.Image:
    scene = graded(width, height, pick(rng, "sky", "teal", "olive"), darker(pick(rng, "teal", "cobalt", "slate"), 0.2))
    draw = ImageDraw.Draw(scene)
    for x, y, length in rng.uniform((-8, 4, 6), (width, height, 26), size=(22, 3)).tolist():
        draw.line(
            [round(x), round(y), round(x + length), round(y)], fill=lighter(pick(rng, "sky", "teal", "mint"), 0.3)
        )
    for x in rng.uniform(0, width, size=6).tolist():
        draw.line([round(x), round(height * 0.35), round(x + 2), -2], fill=pick(rng, "olive", "forest"), width=2)
    return scene.filter(ImageFilter.GaussianBlur(1.2))


def _shore(width: int, height: int, rng: Rng) -> Image.Image:
    scene, sea = _sky(width, height, rng), height * rng.uniform(0.2, 0.4)
    draw, sand = ImageDraw.Draw(scene), sea + height * rng.uniform(0.15, 0.35)
    draw.rectangle([0, round(sea), width, height], fill=pick(rng, "teal", "cobalt", "sky"))
    draw.rectangle([0, round(sand), width, height], fill=pick(rng, "sand", "cream", "stone"))
    draw.line([0, round(sand), width, round(sand + rng.uniform(-3, 3))], fill=COLOURS["white"], width=2)
    _blobs(draw, rng, 8, (0, sand + 4, width, height), (1, 3), "stone", "brown", "cream")
    return scene.filter(ImageFilter.GaussianBlur(1.2))


def _street(width: int, height: int, rng: Rng) -> Image.Image:
    scene, kerb = _sky(width, height, rng), round(height * rng.uniform(0.55, 0.66))
    draw, x = ImageDraw.Draw(scene), -4
    while x < width:
        house, roof = int(rng.integers(10, 24)), round(kerb - height * rng.uniform(0.2, 0.55))
        draw.rectangle(
            [x, roof, x + house, kerb], fill=pick(rng, "sand", "rust", "slate", "stone", "cream", "rose", "teal")
        )
        glass = pick(rng, "slate", "lemon", "charcoal", "sky")
        for window in range(x + 3, x + house - 3, 6):
            for storey in range(roof + 4, kerb - 6, 8):
                draw.rectangle([window, storey, window + 2, storey + 3], fill=glass)
        x += house
    draw.rectangle([0, kerb, width, kerb + 4], fill=lighter(COLOURS["stone"]))
    _road(draw, width, height, kerb + 4, rng)
    return scene.filter(ImageFilter.GaussianBlur(1))


def _country(width: int, height: int, rng: Rng) -> Image.Image:
    scene, verge = _sky(width, height, rng), round(height * rng.uniform(0.58, 0.68))
    draw = ImageDraw.Draw(scene)
    for shade in ("mint", "teal", "olive", "forest"):
        x, y, size = rng.uniform((0, 0.36 * height, 20), (width, 0.55 * height, 50)).tolist()
        draw.ellipse([round(x - 2 * size), round(y), round(x + 2 * size), round(y + 2 * size)], fill=pick(rng, shade))
    _blobs(draw, rng, 5, (0, verge - 10, width, verge - 2), (4, 9), "forest", "olive")
    _road(draw, width, height, verge, rng)
    return scene.filter(ImageFilter.GaussianBlur(1))


def _coast(width: int, height: int, rng: Rng) -> Image.Image:
    scene, sea = _sky(width, height, rng), round(height * rng.uniform(0.3, 0.45))
    draw, verge = ImageDraw.Draw(scene), round(height * rng.uniform(0.58, 0.68))
    draw.rectangle([0, sea, width, height], fill=pick(rng, "teal", "cobalt", "sky"))
    draw.rectangle([0, verge - 4, width, verge], fill=pick(rng, "white", "stone", "sand"))
    _road(draw, width, height, verge, rng)
    return scene.filter(ImageFilter.GaussianBlur(1))


def _road(draw: Draw, width: int, height: int, top: int, rng: Rng) -> None:
    draw.rectangle([0, top, width, height], fill=pick(rng, "charcoal", "slate", "stone"))
    line, gap = round(top + 0.75 * (height - top)), int(rng.integers(12, 22))
    for x in range(int(rng.integers(-10, 0)), width, gap):
        draw.rectangle([x, line, x + gap // 2, line + 1], fill=COLOURS["cream"])


def _room(width: int, height: int, rng: Rng) -> Image.Image:
    wall = lighter(pick(rng, "mint", "sand", "sky", "rose", "stone", "ochre", "slate"), 0.3)
    scene, floor = graded(width, height, wall, darker(wall, 0.12)), round(height * rng.uniform(0.62, 0.78))
    draw = ImageDraw.Draw(scene)
    x, y = rng.uniform((-4, 2), (width - 12, 0.3 * height)).tolist()
    draw.rectangle(
        [round(x), round(y), round(x) + 16, round(y) + 12],
        fill=pick(rng, "white", "teal", "rust", "ochre"),
        outline=COLOURS["brown"],
    )
    draw.rectangle([0, floor - 2, width, floor], fill=lighter(wall, 0.5))
    draw.rectangle([0, floor, width, height], fill=pick(rng, "brown", "sand", "stone", "rust"))
    _blobs(draw, rng, 4, (-4, floor - 14, 8, floor), (3, 7), "forest", "olive")
    return scene.filter(ImageFilter.GaussianBlur(1))


def _table(width: int, height: int, rng: Rng) -> Image.Image:
    scene = graded(
        width, height, lighter(pick(rng, "stone", "sky", "mint", "cream", "sand")), pick(rng, "stone", "sand", "slate")
    )
    draw, edge = ImageDraw.Draw(scene), round(height * rng.uniform(0.5, 0.72))
    _blobs(draw, rng, 5, (0, edge - 12, width, edge), (3, 9), "teal", "rust", "ochre", "slate", "forest", "violet")
    wood = pick(rng, "brown", "sand", "ochre", "stone")
    draw.rectangle([0, edge, width, height], fill=wood)
    for y in range(edge + 4, height, 6):
        draw.line([0, y, width, y], fill=darker(wood, 0.15))
    return scene.filter(ImageFilter.GaussianBlur(1))


def _tiles(width: int, height: int, rng: Rng) -> Image.Image:
    tile = lighter(pick(rng, "white", "mint", "sky", "cream", "rose"), 0.2)
    scene, edge, step = (
        graded(width, height, tile, darker(tile, 0.1)),
        round(height * rng.uniform(0.62, 0.78)),
        int(rng.integers(8, 14)),
    )
    draw = ImageDraw.Draw(scene)
    for x in range(int(rng.integers(0, step)), width, step):
        draw.line([x, 0, x, edge], fill=darker(tile, 0.2))
    for y in range(0, edge, step):
        draw.line([0, y, width, y], fill=darker(tile, 0.2))
    draw.rectangle([0, edge, width, height], fill=pick(rng, "slate", "stone", "charcoal", "brown"))
    return scene.filter(ImageFilter.GaussianBlur(0.8))


def _studio(width: int, height: int, rng: Rng) -> Image.Image:
    paper = lighter(pick(rng, "stone", "sand", "sky", "rose", "mint", "white"), 0.45)
    return graded(width, height, paper, darker(paper, 0.2))


BACKDROPS: dict[str, Callable[[int, int, Rng], Image.Image]] = {
    "branch": _foliage, "trunk": _foliage, "meadow": _meadow, "cliff": _cliff, "pond": _pond, "shore": _shore,
    "street": _street, "country": _country, "coast": _coast,
    "room": _room, "table": _table, "tiles": _tiles, "studio": _studio,
}  # fmt: skip
