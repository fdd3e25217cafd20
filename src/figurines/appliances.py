"""How small products are drawn: coffee maker, fan, kettle, mug, stapler and toaster."""

from __future__ import annotations

import numpy as np

from figurines.geometry import arc, ellipse, rectangle, rounded
from figurines.palette import COLOURS, darker, lighter
from figurines.sketch import Sketch


def coffee_maker(sketch: Sketch) -> None:
    """Shape, pattern and handle are the jug's."""
    top = -0.75 * sketch.height
    sketch.fill(rectangle(0.20, top, 0.55, 0.62), darker(sketch.body, 0.25))
    sketch.fill(rounded(rectangle(-0.50, top, 0.55, top + 0.34), 0.06), sketch.body)
    sketch.handle(-0.46, 0.24, -0.26)
    sketch.coat(sketch.shell(-0.50, -0.12, 0.12, 0.56))
    sketch.fill(rectangle(-0.34, -0.2, -0.04, -0.08), sketch.accent)
    sketch.feet(-0.55, 0.58, 0.60, darker(sketch.body, 0.4))
    sketch.fill(ellipse((0.36, top + 0.17), 0.08), sketch.accent)


def fan(sketch: Sketch) -> None:
    """Shape is the number of blades, pattern is on the cage, handle is the hub."""
    traits, centre, bottom = sketch.traits, (0.0, -0.25), 0.55 + 0.35 * (sketch.height - 0.8)
    sketch.stroke([(0, 0), (0, bottom)], 0.09, sketch.body)
    if traits["foot"] == "plinth":
        sketch.fill(rounded(rectangle(-0.34, bottom, 0.34, bottom + 0.1), 0.05), sketch.body)
    else:
        sketch.stroke([(-0.36, bottom + 0.1), (0, bottom - 0.16), (0.36, bottom + 0.1)], 0.07, sketch.body)
    if traits["foot"] == "splayed":
        sketch.fill(ellipse((0, bottom - 0.16), 0.13), sketch.accent)
    sketch.fill(ellipse(centre, 0.56), sketch.accent if traits["pattern"] in ("band", "dots") else sketch.body)
    sketch.fill(ellipse(centre, 0.49), lighter(COLOURS["stone"], 0.75))
    blades = {"straight": 3, "tapered": 4, "round": 5}[traits["shape"]]
    for start in np.linspace(0, 360, blades, endpoint=False).tolist():
        sketch.paint([centre, *arc(centre, 0.45, 0.45, start, start + 200 / blades, 6)], sketch.accent)
    if traits["pattern"] in ("stripes", "dots"):
        sketch.stroke(arc(centre, 0.3, 0.3, 0, 360, 24), 0.05, sketch.body)
    if traits["handle"] != "angle":
        sketch.fill(ellipse(centre, 0.1 if traits["handle"] == "knob" else 0.18), sketch.body)


def kettle(sketch: Sketch) -> None:
    """The handle is over the lid or at the side."""
    top = -0.45 * sketch.height
    sketch.fill([(-0.40, 0.2), (-0.86, -0.30), (-0.72, -0.36), (-0.30, -0.1)], sketch.body)
    if sketch.traits["handle"] == "loop":
        sketch.stroke(arc((0, top + 0.1), 0.40, 0.44, 180, 360), 0.08, sketch.accent)
    elif sketch.traits["handle"] == "angle":
        frame = [(-0.34, top + 0.1), (-0.28, top - 0.3), (0.28, top - 0.3), (0.34, top + 0.1)]
        sketch.stroke(frame, 0.08, sketch.accent)
    else:
        sketch.stroke([(0.42, -0.1), (0.80, -0.34)], 0.1, sketch.accent)
    sketch.fill(ellipse((0, top), 0.1), sketch.accent)
    sketch.coat(sketch.shell(-0.52, top, 0.52, 0.45))
    sketch.feet(-0.42, 0.42, 0.44, sketch.accent)


def mug(sketch: Sketch) -> None:
    """The foot is a saucer, a stand, or none."""
    half = 0.5 * sketch.height
    sketch.handle(0.40, 0.0, 0.6 * half)
    sketch.coat(sketch.shell(-0.48, -half, 0.48, half))
    sketch.fill(ellipse((0, -0.88 * half), 0.32, 0.07), darker(COLOURS["brown"], 0.3))
    if sketch.traits["foot"] == "plinth":
        sketch.fill(ellipse((0, half), 0.62, 0.06), sketch.accent)
    elif sketch.traits["foot"] == "splayed":
        stand = [(-0.2, half - 0.04), (0.2, half - 0.04), (0.36, half + 0.14), (-0.36, half + 0.14)]
        sketch.fill(stand, sketch.accent)


def stapler(sketch: Sketch) -> None:
    """Shape is the nose, handle is the grip on top, foot is the base."""
    traits, top = sketch.traits, -0.30 * sketch.height
    sketch.fill(
        rounded(rectangle(-0.95, 0.24, 0.95, 0.46 if traits["foot"] == "plinth" else 0.34), 0.04), sketch.accent
    )
    if traits["foot"] == "splayed":
        sketch.fill([(-0.95, 0.30), (-0.65, 0.30), (-0.5, 0.5), (-0.95, 0.5)], sketch.accent)
    sketch.fill([(-0.86, 0.26), (-0.70, -0.1), (0.9, 0.1), (0.9, 0.2), (-0.55, 0.26)], COLOURS["stone"])
    drop, radius = {"straight": (0.0, 0.0), "tapered": (0.12, 0.1), "round": (0.06, 0.3)}[traits["shape"]]
    back = [(-0.5, 0.06), (-0.90, 0.06), (-0.82, top - 0.06), (-0.3, top - 0.1)]
    sketch.coat(rounded([*back, (0.95 - drop, drop - 0.06), (0.95, 0.1)], radius))
    if traits["handle"] == "knob":
        sketch.fill(ellipse((0.62, -0.12), 0.12), sketch.accent)
    elif traits["handle"] == "angle":
        sketch.fill(rectangle(-0.3, top - 0.2, 0.2, top - 0.08), sketch.accent)


def toaster(sketch: Sketch) -> None:
    """The handle is the lever's."""
    top = -0.42 * sketch.height
    for x in (-0.24, 0.24):
        sketch.fill(rounded(rectangle(x - 0.2, top - 0.22, x + 0.2, top + 0.2), 0.08), COLOURS["ochre"])
    sketch.coat(sketch.shell(-0.72, top, 0.72, 0.42))
    sketch.handle(0.66, 0.0, 0.16)
    sketch.fill(ellipse((-0.45, 0.22), 0.08), sketch.accent)
    sketch.feet(-0.62, 0.62, 0.40, COLOURS["charcoal"])
