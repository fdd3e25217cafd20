"""How people in garments are drawn: the person, and the garment on it.

The waist is ``y = 0``, the shoulders are at -0.42, the feet at 1.14.
"""

from __future__ import annotations

import numpy as np

from figurines.figure import Figure
from figurines.geometry import Points, arc, band, ellipse, points, rectangle
from figurines.palette import COLOURS, Colour, darker
from figurines.species import Traits

LOWER = ("Pants", "Shorts", "Skirts")  # categories worn below the waist
FRAMES = {"Dresses": (-0.6, 0.98), "Pants": (-0.08, 1.14), "Shorts": (-0.12, 0.88), "Skirts": (-0.12, 0.88)}
SKINS: tuple[Colour, ...] = ((236, 200, 172), (206, 158, 122), (150, 104, 76), (104, 72, 56))
SIDES = (-1, 1)


def wearer(category: str, traits: Traits, view: str, rng: np.random.Generator) -> Figure:
    """A person in the garment and in other clothes; the landmark ``foot`` is where they stand."""
    skin = SKINS[int(rng.integers(len(SKINS)))]
    hair, other = (
        COLOURS[str(rng.choice(names))]
        for names in (("brown", "black", "ochre", "rust"), ("stone", "charcoal", "white", "slate"))
    )
    spread = float(rng.uniform(0.04, 0.3))
    arms = [
        points([(0.24 * side, -0.36), ((0.30 + 0.6 * spread) * side, 0.0), ((0.30 + spread) * side, 0.36)])
        for side in SIDES
    ]
    figure = Figure()
    _person(figure, arms, skin, hair, view)
    if category in LOWER:
        figure.fill(_torso(0.12, 0.0), other)
        for arm in arms:
            figure.stroke(arm[:2], 0.13, other)
        _lower(figure, category, traits)
    else:
        if category != "Dresses":
            figure.fill(rectangle(-0.19, -0.05, 0.19, 0.2), other)
            for side in SIDES:
                figure.stroke([(0.10 * side, 0.0), (0.13 * side, 1.0)], 0.18, other)
        _upper(figure, category, traits, arms, view)
    top, bottom = (-0.7, 1.1) if view == "full" else FRAMES.get(category, (-0.65, 0.35))
    figure.frame(-0.5, top, 0.5, bottom)
    figure.mark("foot", (0.0, 1.16))
    return figure


def _person(figure: Figure, arms: list[Points], skin: Colour, hair: Colour, view: str) -> None:
    for side in SIDES:
        figure.stroke([(0.10 * side, 0.35), (0.13 * side, 1.12)], 0.12, skin)
        figure.fill(ellipse((0.15 * side, 1.14), 0.10, 0.05), COLOURS["charcoal"])
    for arm in arms:
        figure.stroke(arm, 0.10, skin)
        figure.fill(ellipse(arm[-1], 0.06), skin)
    figure.stroke([(0, -0.62), (0, -0.42)], 0.11, skin)
    figure.fill(ellipse((0, -0.78), 0.17, 0.20), hair)
    if view != "back":
        figure.fill(ellipse((0.03 if view == "side" else 0.0, -0.74), 0.12, 0.15), skin)


def _torso(bottom: float, flare: float) -> Points:
    half = [(0.1, -0.5), (0.27, -0.42), (0.19, 0.0), (0.23 + flare, bottom)]
    return points([*half, *((-x, y) for x, y in reversed(half))])


def _weave(figure: Figure, outline: Points, traits: Traits) -> None:
    """A piece of cloth with its pattern."""
    figure.fill(outline, COLOURS[traits["cloth colour"]])
    (left, top), (right, bottom) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
    ink, pattern = COLOURS[traits["pattern colour"]], traits["cloth pattern"]
    if pattern in ("stripes", "check"):
        for y in np.arange(top + 0.06, bottom - 0.02, 0.15).tolist():
            figure.paint(band(outline, y, y + 0.06), ink)
    if pattern == "check":
        for x in np.arange(left + 0.08, right - 0.04, 0.15).tolist():
            figure.paint(band(outline[:, ::-1], x, x + 0.035)[:, ::-1], ink)
    elif pattern == "dots":
        for row, y in enumerate(np.arange(top + 0.1, bottom - 0.04, 0.14).tolist()):
            for x in np.arange(-0.2 + 0.07 * (row % 2), 0.22, 0.14).tolist():
                figure.paint(ellipse((x, y), 0.032), ink)
    elif pattern == "block":
        figure.paint(band(outline, (top + bottom) / 2, bottom), ink)


def _upper(figure: Figure, category: str, traits: Traits, arms: list[Points], view: str) -> None:
    accent, nth = COLOURS[traits["pattern colour"]], ("short", "middle", "long").index(traits["hem"])
    bottom, flare = ((0.45, 0.68, 0.95)[nth], 0.16) if category == "Dresses" else ((0.12, 0.24, 0.38)[nth], 0.03)
    torso = _torso(bottom, flare)
    _weave(figure, torso, traits)
    if not (category == "Tees_Tanks" and traits["sleeve"] == "short"):
        _sleeves(figure, 0.19 if category in ("Sweaters", "Jackets_Coats") else 0.15, traits, arms)
    if view != "back":
        _front(figure, category, traits, bottom)
    figure.paint(band(torso, bottom - 0.04, bottom), accent)
    if traits["trim"] == "belt":
        figure.paint(band(torso, 0.0, 0.08), COLOURS["brown"])


def _sleeves(figure: Figure, thick: float, traits: Traits, arms: list[Points]) -> None:
    colour = darker(COLOURS[traits["cloth colour"]], 0.15)
    for shoulder, elbow, wrist in arms:
        if traits["sleeve"] == "short":
            figure.stroke([shoulder, shoulder + 0.72 * (elbow - shoulder)], thick, colour)
        else:
            end = elbow + (0.9 if traits["sleeve"] == "long" else 0.45) * (wrist - elbow)
            figure.stroke([shoulder, elbow, end], thick, colour)


def _front(figure: Figure, category: str, traits: Traits, bottom: float) -> None:
    accent, cloth = COLOURS[traits["pattern colour"]], COLOURS[traits["cloth colour"]]
    if traits["neck"] == "vee":
        figure.fill([(-0.11, -0.51), (0.11, -0.51), (0.0, -0.24)], accent)
    elif traits["neck"] == "collar":
        for side in SIDES:
            figure.fill([(0.0, -0.40), (0.06 * side, -0.54), (0.18 * side, -0.46), (0.13 * side, -0.34)], accent)
    else:
        figure.fill(arc((0, -0.5), 0.13, 0.13, 0, 180), accent)
    if traits["trim"] == "buttons" or category == "Jackets_Coats":
        figure.trace([(0, -0.34), (0, bottom)], 0.03, darker(cloth, 0.4))
    if traits["trim"] == "buttons":
        for y in np.arange(-0.24, min(bottom, 0.3), 0.14).tolist():
            figure.paint(ellipse((0.04, y), 0.036), accent)
    elif traits["trim"] == "pocket":
        figure.paint(rectangle(0.05, -0.28, 0.18, -0.12), accent)


def _lower(figure: Figure, category: str, traits: Traits) -> None:
    """Below the waist the neck stands for a seam, and the sleeve for the width."""
    accent, cloth = COLOURS[traits["pattern colour"]], COLOURS[traits["cloth colour"]]
    hem, width = (("short", "middle", "long").index(traits[trait]) for trait in ("hem", "sleeve"))
    if category == "Skirts":
        bottom, wide = (0.45, 0.66, 0.92)[hem], 0.25 + (0.0, 0.12, 0.22)[width]
        _weave(figure, points([(-0.2, 0.0), (0.2, 0.0), (wide, bottom), (-wide, bottom)]), traits)
    else:
        bottom = ((0.80, 0.94, 1.08) if category == "Pants" else (0.40, 0.50, 0.62))[hem]
        wide = 0.22 + (0.0, 0.04, 0.09)[width]
        for side in SIDES:
            leg = [(0.21, 0.0), (wide, bottom), (0.05, bottom), (0.0, 0.2), (0.0, 0.0)]
            _weave(figure, points(leg) * (side, 1.0), traits)
    figure.paint(rectangle(-0.3, -0.01, 0.3, 0.07), accent if traits["trim"] == "belt" else darker(cloth, 0.3))
    if traits["trim"] == "pocket":
        figure.paint(rectangle(0.06, 0.12, 0.17, 0.24), accent)
    elif traits["trim"] == "buttons":
        for y in (0.1, 0.2, 0.3):
            figure.paint(ellipse((0.0, y), 0.03), accent)
    seams = {"vee": [(0.17, 0.06), (0.19, bottom)], "collar": [(-0.2, bottom - 0.04), (0.2, bottom - 0.04)]}
    if traits["neck"] in seams:
        figure.trace(seams[traits["neck"]], 0.05, cloth if traits["cloth pattern"] == "block" else darker(cloth, 0.5))
