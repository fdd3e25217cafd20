"""How cars are drawn: the traits on a body."""

from __future__ import annotations

import numpy as np

from figurines.bodies import BODIES, Body
from figurines.figure import Figure
from figurines.geometry import Points, arc, ellipse, moved, points, rectangle, rounded
from figurines.palette import COLOURS, Colour, blend, contrasting, darker, lighter
from figurines.species import Traits

GLASS = blend(COLOURS["slate"], COLOURS["charcoal"], 0.5)
METAL = lighter(COLOURS["stone"], 0.55)


def car(body: Body, traits: Traits, paint: Colour) -> Figure:
    """One car, facing right; the landmark ``foot`` is where it stands."""
    figure = Figure()
    roof = paint if traits["roof colour"] == "paint" else COLOURS[traits["roof colour"]]
    if body is BODIES["Convertible"]:
        _open_top(figure, traits, COLOURS["brown"] if traits["roof colour"] == "paint" else roof)
    else:
        _rack(figure, body, traits)
    _cabin(figure, body, roof)
    figure.fill(rounded(body.lower), paint)
    _flank(figure, body, traits, paint)
    _doors(figure, body, traits, paint)
    _make(figure, body, traits, paint)
    _spoiler(figure, body, traits, paint)
    _bonnet(figure, body, traits, paint)
    for x in (0.86, -1.03):  # bumpers
        figure.fill(rounded(rectangle(x, -0.24, x + 0.16, -0.14), 0.03), darker(paint, 0.5))
    for x in (-0.60, 0.62):
        _wheel(figure, points((x, -0.20)), traits["wheel"], darker(paint, 0.7))
    figure.mark("foot", (0.0, 0.0))
    return figure


def _open_top(figure: Figure, traits: Traits, seats: Colour) -> None:
    if traits["roof rack"] == "rails":  # a roll bar
        figure.stroke([(-0.50, -0.5), (-0.44, -0.80), (-0.14, -0.80)], 0.05, COLOURS["charcoal"])
    elif traits["roof rack"] == "box":  # a suitcase behind the seats
        figure.fill(rounded(rectangle(-0.86, -0.74, -0.48, -0.5), 0.03), COLOURS["charcoal"])
    for x in (-0.32, -0.02):
        figure.fill(rounded(rectangle(x - 0.09, -0.72, x + 0.07, -0.5), 0.03), seats)


def _rack(figure: Figure, body: Body, traits: Traits) -> None:
    rear, front, top = body.cabin[1][0], body.cabin[2][0], body.top
    if traits["roof rack"] == "rails":
        figure.stroke([(rear + 0.06, top - 0.07), (front - 0.06, top - 0.07)], 0.035, COLOURS["charcoal"])
        for x in (rear + 0.08, front - 0.08):
            figure.stroke([(x, top - 0.07), (x, top + 0.02)], 0.03, COLOURS["charcoal"])
    elif traits["roof rack"] == "box":
        figure.fill(rounded(rectangle(rear + 0.05, top - 0.15, front - 0.12, top + 0.02), 0.03), COLOURS["charcoal"])


def _cabin(figure: Figure, body: Body, roof: Colour) -> None:
    rear, *_, front = body.cabin
    figure.fill(rounded([*body.cabin, (front[0], front[1] + 0.06), (rear[0], rear[1] + 0.06)], 0.1), roof)
    glass = rounded(body.glass, 0.04)
    left, right = float(glass[:, 0].min()), float(glass[:, 0].max())
    figure.fill(glass, GLASS)
    gleam = [(left + 0.3 * (right - left), -0.60), (left + 0.45 * (right - left), body.top)]
    figure.trace(gleam, 0.04, lighter(GLASS, 0.4))
    for below, above in body.pillars:
        figure.stroke([(below, -0.58), (above, body.top + 0.04)], 0.045, roof)


def _flank(figure: Figure, body: Body, traits: Traits, paint: Colour) -> None:
    if traits["flank"] == "two tone":
        figure.paint(
            rectangle(-1.0, body.bottom - 0.20, 1.0, body.bottom),
            contrasting(paint, darker(paint, 0.6), lighter(paint, 0.7)),
        )
    elif traits["flank"] == "low stripe":
        figure.paint(
            rectangle(-0.96, body.bottom - 0.20, 0.96, body.bottom - 0.12),
            contrasting(paint, COLOURS["scarlet"], COLOURS["white"]),
        )
    elif traits["flank"] == "twin stripes":
        for y in (body.bottom - 0.30, body.bottom - 0.22):
            stripe = rectangle(-0.96, y - 0.02, 0.96, y + 0.02)
            figure.paint(stripe, contrasting(paint, COLOURS["black"], COLOURS["lemon"]))
    if traits["sill"] != "plain":
        sill = COLOURS["black"] if traits["sill"] == "dark" else COLOURS["cream"]
        figure.paint(rectangle(-1.0, body.bottom - 0.11, 1.0, body.bottom), sill)


def _doors(figure: Figure, body: Body, traits: Traits, paint: Colour) -> None:
    front, rear = body.door, body.door - 0.36
    seams, handles = {
        "two": ((0.36, front), (front,)),
        "four": ((0.36, front, rear), (front, rear)),
        "panel": ((0.36,), ()),
    }[traits["door"]]
    for x in seams:
        figure.trace([(x, body.belt + 0.02), (x - 0.03, -0.2)], 0.04, darker(paint, 0.6))
    for x in handles:
        handle = rectangle(x + 0.04, body.belt + 0.05, x + 0.17, body.belt + 0.10)
        figure.paint(handle, contrasting(paint, COLOURS["black"], COLOURS["white"]))
    if traits["door"] == "panel":
        panel = rectangle(front - 0.2, body.belt + 0.07, front + 0.34, body.belt + 0.22)
        figure.paint(rounded(panel, 0.03), darker(paint, 0.3))


def _make(figure: Figure, body: Body, traits: Traits, paint: Colour) -> None:
    """What the models of a make share: line, lamps and badge."""
    if traits["side line"] == "crease":
        figure.trace([(-0.94, body.belt + 0.12), (0.94, body.belt + 0.12)], 0.025, darker(paint, 0.35))
    elif traits["side line"] == "chrome":
        figure.trace([(-0.8, body.belt + 0.02), (0.46, body.belt + 0.02)], 0.04, COLOURS["white"])
    elif traits["side line"] == "rising":
        figure.trace([(-0.92, body.belt + 0.04), (0.60, -0.28)], 0.03, darker(paint, 0.4))
    nose = points((0.99, max(y for x, y in body.lower if x > 0.9 and y < -0.3)))
    headlamps = {
        "round": ellipse((-0.09, 0.03), 0.075),
        "slit": rectangle(-0.30, -0.02, 0.0, 0.05),
        "square": rectangle(-0.13, -0.06, -0.01, 0.08),
        "drop": points([(0.0, 0.08), (-0.02, -0.06), (-0.34, -0.10)]),
    }
    figure.paint(nose + headlamps[traits["headlamp"]], COLOURS["cream"])
    tail = points((min(x for x, _ in body.lower), -0.46))
    taillamps = {
        "block": rectangle(-0.02, -0.07, 0.12, 0.05),
        "strip": rectangle(-0.02, -0.06, 0.28, 0.0),
        "round": ellipse((0.10, 0.02), 0.06),
    }
    figure.paint(tail + taillamps[traits["taillamp"]], COLOURS["scarlet"])
    badges = {
        "disc": ellipse((0, 0), 0.05),
        "diamond": points([(0, -0.07), (0.05, 0), (0, 0.07), (-0.05, 0)]),
        "bar": rectangle(-0.08, -0.02, 0.08, 0.02),
        "wedge": points([(-0.07, 0.05), (0.07, 0.05), (0.0, -0.06)]),
    }
    metal = contrasting(paint, COLOURS["black"], COLOURS["lemon"])
    figure.paint(moved(badges[traits["badge"]], 0.36, -0.36), metal)


def _spoiler(figure: Figure, body: Body, traits: Traits, paint: Colour) -> None:
    x, y = body.stern
    if traits["tail spoiler"] == "lip":
        figure.fill([(x + 0.12, y), (x - 0.22, y - 0.07), (x - 0.18, y + 0.06)], darker(paint, 0.3))
    elif traits["tail spoiler"] == "wing":
        figure.stroke([(x + 0.04, y), (x + 0.02, y - 0.12)], 0.03, COLOURS["charcoal"])
        figure.fill(rounded(rectangle(x - 0.14, y - 0.17, x + 0.16, y - 0.10), 0.03), darker(paint, 0.3))


def _bonnet(figure: Figure, body: Body, traits: Traits, paint: Colour) -> None:
    y = float(np.interp(0.6, *points(body.lower[3:]).T))
    if traits["bonnet"] == "vent":
        figure.fill([(0.52, y + 0.04), (0.58, y - 0.07), (0.78, y + 0.02), (0.78, y + 0.08)], COLOURS["black"])
    elif traits["bonnet"] == "stripe":
        figure.paint(rectangle(0.54, -0.8, 0.72, -0.38), contrasting(paint, COLOURS["scarlet"], COLOURS["white"]))


def _wheel(figure: Figure, hub: Points, style: str, arch: Colour) -> None:
    figure.paint(ellipse(hub, 0.25), arch)
    figure.fill(ellipse(hub, 0.205), COLOURS["black"])
    if style == "five spokes":
        for end in arc(hub, 0.15, 0.15, -90, 198, 5):
            figure.trace([hub, end], 0.055, METAL)
        return
    rings = {
        "disc": ((0.14, METAL),),
        "dark": ((0.06, COLOURS["stone"]),),
        "white wall": ((0.17, COLOURS["white"]), (0.11, COLOURS["charcoal"])),
        "ring": ((0.14, METAL), (0.095, COLOURS["black"]), (0.045, METAL)),
    }[style]
    for radius, colour in rings:
        figure.fill(ellipse(hub, radius), colour)
