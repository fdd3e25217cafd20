"""How birds are drawn: the traits on the build of a family."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from figurines.builds import Build
from figurines.figure import Figure
from figurines.geometry import Points, arc, ellipse, moved, points, rounded, turned
from figurines.palette import COLOURS, Colour, blend, darker, lighter
from figurines.species import Traits

Placed = Callable[[ArrayLike], Points]


def bird(build: Build, traits: Traits, rng: np.random.Generator) -> Figure:
    """One individual, facing right, its posture drawn at random.

    Its landmarks are the parts of the side that is seen, ``near leg``, ``far leg``, and ``foot`` where it stands.
    """
    tilt, nod, swing, lift = rng.uniform((-7, -12, -8, -6), (7, 10, 8, 10)).tolist()
    figure, back, depth = Figure(), COLOURS[traits["back"]], build.depth / 2

    def placed(outline: ArrayLike) -> Points:
        return turned(outline, -(build.tilt + tilt))

    shoulder = placed([(0.30, -0.36 * depth)])[0]
    head = moved(shoulder, build.reach[0], -build.reach[1]) + rng.uniform(-0.03, 0.03, size=2)
    _tail(figure, build, traits, placed, swing)
    _legs(figure, build, traits, placed([(0.0, 0.8 * depth)])[0], float(rng.uniform(-0.05, 0.05)))
    _neck(figure, shoulder, head, build, back)
    _body(figure, depth, traits, placed)
    _head(figure, head, build, traits, nod)
    _wing(figure, depth, traits, placed, lift)
    for name, point in {
        "back": (-0.04, -0.80),
        "belly": (0.06, 0.72),
        "breast": (0.40, 0.18),
        "wing": (-0.12, 0.0),
    }.items():
        figure.mark(name, placed([(point[0], point[1] * depth)])[0])
    return figure


def _tail(figure: Figure, build: Build, traits: Traits, placed: Placed, swing: float) -> None:
    length, width, hang = build.tail
    shape = points(
        {
            "square": [(-1.0, -0.58), (-1.0, 0.58)],
            "forked": [(-1.08, -0.95), (-0.62, 0.0), (-1.08, 0.95)],
            "wedge": [(-0.72, -0.85), (-1.05, 0.0), (-0.72, 0.85)],
        }[traits["tail shape"]]
    )
    tip = (-0.60, 0.80) if traits["tail shape"] == "wedge" else (-0.50, 0.55)  # where it begins, and its width there

    def hung(outline: ArrayLike) -> Points:
        return placed(moved(turned(points(outline) * (length, width), -(hang + swing)), -0.40, -0.02))

    figure.fill(hung([(0.12 / length, -0.5), *shape, (0.12 / length, 0.5)]), darker(COLOURS[traits["back"]], 0.2))
    if traits["tail tip"] != "plain":
        figure.fill(hung([(tip[0], -tip[1]), *shape, tip]), COLOURS[traits["tail tip"]])
    figure.mark("tail", hung([(-0.4, 0.0)])[0])


def _legs(figure: Figure, build: Build, traits: Traits, hip: Points, stride: float) -> None:
    colour = COLOURS[traits["leg"]]
    for name, offset in (("far leg", stride - 0.07), ("near leg", 0.05 - stride)):
        top, ankle = moved(hip, 0.6 * offset, -0.06), moved(hip, offset, build.leg)
        figure.stroke([top, ankle], 0.05, colour)
        figure.stroke([moved(ankle, -0.03, 0.0), moved(ankle, 0.11, 0.015)], 0.045, colour)
        figure.mark(name, (hip + ankle) / 2)
    figure.mark("foot", moved(hip, 0.0, build.leg))


def _neck(figure: Figure, shoulder: Points, head: Points, build: Build, back: Colour) -> None:
    along = head - shoulder
    across = points([-along[1], along[0]]) / float(np.hypot(*along))
    below, wide, narrow = shoulder - 0.4 * along, (0.30 * build.depth + 0.04) * across, 0.78 * build.head * across
    figure.fill([below - wide, head - narrow, head + narrow, below + wide], back)


def _body(figure: Figure, depth: float, traits: Traits, placed: Placed) -> None:
    def under(start: float, stop: float, steps: int = 20) -> Points:
        return placed(arc((0, 0), 0.52, 1.04 * depth, start, stop, steps))  # beyond the outline, to leave no seam

    figure.fill(placed(ellipse((0, 0), 0.5, depth)), COLOURS[traits["back"]])
    figure.paint(under(-28, 168), COLOURS[traits["belly"]])
    breast = traits["breast"]
    if breast in COLOURS:
        figure.paint(under(-56, 70), COLOURS[breast])
    elif breast == "band":
        figure.paint(np.concatenate([under(-30, -2, 4), under(50, 84, 4)]), COLOURS["black"])
    elif breast == "spots":
        spots = ((0.40, -0.06), (0.33, 0.33), (0.20, 0.64), (0.44, 0.24), (0.28, 0.06), (0.08, 0.78), (0.16, 0.38))
        for x, y in spots:
            figure.paint(placed(ellipse((x, y * depth), 0.04)), COLOURS["black"])


def _head(figure: Figure, centre: Points, build: Build, traits: Traits, nod: float) -> None:
    def at(outline: ArrayLike) -> Points:
        return turned(points(outline) * build.head, -nod) + centre

    back, eye = COLOURS[traits["back"]], (0.36, -0.12)
    crown = darker(back, 0.3) if traits["crown colour"] == "plain" else COLOURS[traits["crown colour"]]
    if traits["crown crest"] == "peak":
        figure.fill(at([(0.45, -0.75), (-0.75, -1.75), (-0.95, -0.25)]), crown)
    elif traits["crown crest"] == "fan":
        spikes = [(0.75, -1.6), (0.3, -1.25), (0.05, -1.85), (-0.3, -1.25), (-0.75, -1.6)]
        figure.fill(at([(0.75, -0.6), *spikes, (-0.8, -0.5)]), crown)
    tip = _beak(figure, build, traits, at)
    figure.fill(at(ellipse((0, 0), 1.0)), back)
    if traits["throat"] != "plain":
        figure.fill(at(arc((0, 0), 1.02, 1.02, 18, 122)), COLOURS[traits["throat"]])
    if traits["crown colour"] != "plain":
        figure.fill(at(arc((0, 0), 1.03, 1.03, 192, 342)), crown)
    _eye(figure, traits, eye, at)
    places = {"crown": (-0.05, -0.8), "forehead": (0.62, -0.5), "nape": (-0.82, 0.05), "throat": (0.45, 0.7)}
    for name, point in (places | {"eye": eye, "beak": (0.5 + 0.5 * tip[0], 0.5 * tip[1] + 0.04)}).items():
        figure.mark(name, at([point])[0])


def _beak(figure: Figure, build: Build, traits: Traits, on_head: Placed) -> tuple[float, float]:
    """Draws the beak and returns its tip, in units of the head's radius."""
    length, base, drop = (value / build.head for value in build.beak)
    colour, tip, middle = COLOURS[traits["beak"]], (0.9 + length, 0.1 + drop), 0.9 + 0.5 * length
    upper = [(0.7, 0.05 - 0.5 * base), (middle, 0.02 - 0.32 * base)]
    lower = [(middle, 0.1 + 0.3 * base), (0.7, 0.1 + 0.5 * base)]
    figure.fill(on_head([*upper, tip, *lower]), colour)
    figure.trace(on_head([(0.8, 0.1), tip]), 0.016, darker(colour, 0.45))
    return tip


def _eye(figure: Figure, traits: Traits, eye: tuple[float, float], on_head: Placed) -> None:
    iris, glint = COLOURS["black"], COLOURS["white"]
    if traits["eye"] == "mask":
        mask = [(0.98, -0.1), (0.5, -0.42), (-0.2, -0.38), (-0.95, -0.2), (-0.9, 0.16), (0.3, 0.22), (0.95, 0.1)]
        figure.fill(on_head(mask), COLOURS["black"])
        iris, glint = COLOURS["lemon"], COLOURS["black"]
    elif traits["eye"] == "brow":
        brow = [(0.86, -0.46), (0.3, -0.70), (-0.85, -0.54), (-0.95, -0.12), (0.2, -0.32), (0.95, -0.16)]
        figure.fill(on_head(brow), COLOURS["orange"])
    elif traits["eye"] == "ring":
        figure.fill(on_head(ellipse(eye, 0.46)), COLOURS["white"])
    figure.fill(on_head(ellipse(eye, 0.24)), iris)
    figure.fill(on_head(ellipse((eye[0] + 0.07, eye[1] - 0.07), 0.09)), glint)


def _wing(figure: Figure, depth: float, traits: Traits, placed: Placed, lift: float) -> None:
    back = COLOURS[traits["back"]]
    colour = lighter(back, 0.6) if traits["wing"] == "pale" else darker(back, 0.18)

    def folded(outline: ArrayLike) -> Points:
        return placed(turned(points(outline) * (1.0, depth), lift, (0.22, -0.30 * depth)))

    outline = [(0.26, -0.28), (0.14, -0.72), (-0.16, -0.66), (-0.66, 0.02), (-0.40, 0.28), (-0.02, 0.44), (0.20, 0.20)]
    figure.fill(folded(rounded(outline, 1.0)), colour)
    for x, top in ((-0.30, -0.22), (-0.18, -0.10)):  # feathers
        figure.trace(folded([(x - 0.22, top + 0.28), (x + 0.16, top)]), 0.018, darker(colour, 0.3))
    for x in {"bar": (0.10,), "two bars": (0.14, -0.06)}.get(traits["wing"], ()):
        bar = [(x + 0.04, -0.62), (x + 0.10, -0.58), (x + 0.03, 0.44), (x - 0.05, 0.40)]
        figure.paint(folded(bar), COLOURS["white"])
    if traits["wing"] == "patch":
        patch = rounded([(-0.02, -0.15), (-0.32, -0.12), (-0.36, 0.16), (-0.05, 0.34)], 1.0)
        figure.paint(folded(patch), blend(COLOURS["sky"], COLOURS["cobalt"], 0.4))
