"""How passers-by are drawn: someone who walks towards the camera or away from it, small and seen whole.

The top of the head is ``y = -1``, the waist ``y = 0``, the soles are at ``y = 1``. Only what a picture of 96 x 32
pixels can show is drawn, and all of it shows from the front and from behind.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from figurines.figure import Figure
from figurines.geometry import Points, arc, band, ellipse, points, rectangle, rounded
from figurines.palette import COLOURS, Colour, darker
from figurines.species import Traits

View = Literal["front", "back"]
CUTS = ("Trousers", "Shorts", "Skirt")  # what is worn below the waist
SKINS: dict[str, Colour] = {"pale": (236, 200, 172), "tan": (190, 140, 104), "dark": (112, 76, 58)}
GIRTHS = {"slim": 0.84, "middle": 1.0, "broad": 1.2}
SIDES = (-1, 1)


def walker(cut: str, traits: Traits, view: View, rng: np.random.Generator) -> Figure:
    """One person in the middle of a step; the landmark ``foot`` is where they stand.

    A satchel and a tote are at the right of the picture: a figure seen from behind is to be mirrored.
    """
    girth, skin = GIRTHS[traits["build"]], SKINS[traits["skin"]]
    step, swing = rng.uniform(-1, 1, size=2).tolist()
    arms = [
        points(
            [
                (0.25 * girth * side, -0.55),
                ((0.27 * girth + 0.05) * side, -0.24),
                ((0.25 * girth + 0.08 + 0.04 * swing * side) * side, 0.02 + 0.05 * swing * side),
            ]
        )
        for side in SIDES
    ]
    figure = Figure()
    if traits["bag kind"] == "rucksack" and view == "front":
        figure.fill(rounded(rectangle(-0.29 * girth, -0.64, 0.29 * girth, -0.1)), COLOURS[traits["bag colour"]])
    if traits["hair cut"] == "long" and view == "front":
        figure.fill(rounded(rectangle(-0.16, -0.9, 0.16, -0.52)), COLOURS[traits["hair colour"]])
    _legs(figure, cut, traits, skin, girth, step)
    _arms(figure, traits, skin, arms)
    figure.stroke([(0, -0.75), (0, -0.58)], 0.12, skin)
    _top(figure, traits, girth)
    _head(figure, traits, skin, view)
    _bag(figure, traits, girth, view, arms[1][2])
    figure.frame(-0.36, -1.0, 0.36, 1.0)
    figure.mark("foot", (0.0, 1.0))
    return figure


def _legs(figure: Figure, cut: str, traits: Traits, skin: Colour, girth: float, step: float) -> None:
    """The leg that is farther from the camera ends higher in the picture."""
    cloth, shoe = COLOURS[traits["legs colour"]], COLOURS[traits["shoes colour"]]
    for side in SIDES:
        sole = 0.97 - 0.12 * max(0.0, side * step)
        x = side * (0.10 * girth + 0.03 + 0.03 * abs(step))
        leg = points([(0.10 * girth * side, 0.04), (0.11 * girth * side, 0.48), (x, sole - 0.03)])
        shade = darker(skin, 0.15) if side * step > 0 else skin
        figure.stroke(leg, 0.12, shade)
        if cut != "Skirt":
            end = leg if cut == "Trousers" else points([leg[0], leg[1]])
            figure.stroke(end, (0.2 if cut == "Trousers" else 0.23) * girth, cloth)
        figure.fill(ellipse((x + 0.01 * side, sole), 0.1, 0.05), shoe)
    if cut == "Skirt":
        figure.fill(points([(-0.2, 0.0), (0.2, 0.0), (0.3, 0.5), (-0.3, 0.5)]) * (girth, 1.0), cloth)
    else:
        figure.fill(rectangle(-0.2 * girth, -0.02, 0.2 * girth, 0.2), cloth)
        figure.trace([(0.0, 0.16), (0.0, 0.5)], 0.025, darker(cloth, 0.4))


def _arms(figure: Figure, traits: Traits, skin: Colour, arms: list[Points]) -> None:
    sleeve = darker(COLOURS[traits["top colour"]], 0.2)
    for shoulder, elbow, hand in arms:
        figure.stroke([shoulder, elbow, hand], 0.095, skin)
        figure.fill(ellipse(hand, 0.055), skin)
        if traits["sleeves"] == "short":
            figure.stroke([shoulder, shoulder + 0.6 * (elbow - shoulder)], 0.15, sleeve)
        elif traits["sleeves"] == "long":
            figure.stroke([shoulder, elbow, elbow + 0.85 * (hand - elbow)], 0.14, sleeve)


def _top(figure: Figure, traits: Traits, girth: float) -> None:
    half = [(0.09, -0.66), (0.27 * girth, -0.58), (0.21 * girth, -0.05), (0.22 * girth, 0.1)]
    torso, ink = points([*half, *((-x, y) for x, y in reversed(half))]), COLOURS[traits["pattern colour"]]
    figure.fill(torso, COLOURS[traits["top colour"]])
    if traits["top pattern"] == "stripes":
        for y in np.arange(-0.5, 0.1, 0.16).tolist():
            figure.paint(band(torso, y, y + 0.07), ink)
    elif traits["top pattern"] == "yoke":
        figure.paint(band(torso, -0.66, -0.38), ink)
    elif traits["top pattern"] == "block":
        figure.paint(band(torso, -0.24, 0.1), ink)


def _head(figure: Figure, traits: Traits, skin: Colour, view: View) -> None:
    hair = COLOURS[traits["hair colour"]]
    if traits["hair cut"] == "bun":
        figure.fill(ellipse((0.0, -1.0), 0.08), hair)
    figure.fill(ellipse((0.0, -0.84), 0.145, 0.16), hair)
    if view == "back":
        if traits["hair cut"] == "long":
            figure.fill(rounded(rectangle(-0.15, -0.86, 0.15, -0.46)), hair)
        elif traits["hair cut"] != "bun":
            figure.fill(arc((0.0, -0.78), 0.11, 0.1, 0, 180), skin)
    else:
        figure.fill(ellipse((0.0, -0.8), 0.115, 0.13), skin)
        for side in SIDES:
            figure.paint(ellipse((0.05 * side, -0.81), 0.022), COLOURS["black"])
    if traits["hair cut"] == "cap":
        cap = COLOURS[traits["pattern colour"]]
        figure.fill(arc((0.0, -0.88), 0.16, 0.14, 180, 360), cap)
        if view == "front":
            figure.fill(ellipse((0.0, -0.88), 0.19, 0.035), darker(cap))


def _bag(figure: Figure, traits: Traits, girth: float, view: View, hand: Points) -> None:
    colour, kind = COLOURS[traits["bag colour"]], traits["bag kind"]
    if kind == "rucksack" and view == "back":
        figure.fill(rounded(rectangle(-0.2 * girth, -0.6, 0.2 * girth, -0.06)), colour)
        figure.fill(rounded(rectangle(-0.13 * girth, -0.32, 0.13 * girth, -0.12), 0.04), darker(colour))
    elif kind == "rucksack":
        for side in SIDES:
            figure.stroke([(0.15 * girth * side, -0.62), (0.19 * girth * side, -0.16)], 0.07, colour)
    elif kind == "satchel":
        figure.stroke([(-0.18 * girth, -0.62), (0.22 * girth, 0.0)], 0.05, darker(colour))
        figure.fill(rounded(rectangle(0.1 * girth, -0.04, 0.1 * girth + 0.27, 0.18), 0.03), colour)
    elif kind == "tote":
        x, y = hand.tolist()
        figure.stroke([(x - 0.07, y + 0.14), (x, y), (x + 0.07, y + 0.14)], 0.03, darker(colour))
        figure.fill(rectangle(x - 0.13, y + 0.12, x + 0.13, y + 0.44), colour)
