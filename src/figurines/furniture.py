"""How large products are drawn: bicycle, cabinet, chair, lamp, sofa and table."""

from __future__ import annotations

from figurines.geometry import arc, ellipse, points, rectangle, rounded
from figurines.palette import COLOURS, darker
from figurines.sketch import Sketch


def bicycle(sketch: Sketch) -> None:
    """Shape is the frame, pattern is on tyres and hubs, handle is the bar, foot is mudguard or carrier."""
    traits, accent = sketch.traits, sketch.accent
    rear, front, crank = points((-0.58, 0.3)), points((0.58, 0.3)), points((-0.06, 0.32))
    saddle, bar = points((-0.22, -0.30 * sketch.height)), points((0.38, -0.34 * sketch.height))
    for hub in (rear, front):
        tyre = COLOURS["black"] if traits["pattern"] in ("plain", "stripes") else accent
        sketch.stroke(arc(hub, 0.40, 0.40, 0, 360, 28), 0.09, tyre)
        if traits["pattern"] in ("stripes", "band"):
            sketch.fill(ellipse(hub, 0.2), accent)
    if traits["foot"] == "plinth":
        sketch.stroke(arc(rear, 0.50, 0.50, 180, 320), 0.06, accent)
    elif traits["foot"] == "splayed":
        sketch.fill(rectangle(-0.95, -0.2, -0.45, -0.1), COLOURS["brown"])
    for line in ((rear, crank), (rear, saddle), (crank, saddle), (crank, bar), (bar, front)):
        sketch.stroke(line, 0.08, sketch.body)
    if traits["shape"] != "round":
        drop = 0.30 if traits["shape"] == "tapered" else 0.10
        sketch.stroke([0.85 * saddle + 0.15 * crank, (1 - drop) * bar + drop * crank], 0.08, sketch.body)
    sketch.fill(saddle + rounded(rectangle(-0.16, -0.1, 0.14, 0.0), 0.05), accent)
    grips = {
        "loop": [(0, 0), (0.14, -0.06), (0.16, 0.1), (0.02, 0.14)],
        "angle": [(0, 0), (0, -0.16), (-0.18, -0.16)],
        "knob": [(0, 0), (0.16, -0.12)],
    }
    sketch.stroke(bar + grips[traits["handle"]], 0.09, accent)


def cabinet(sketch: Sketch) -> None:
    """Shape is the number of rows of doors."""
    top, bottom = -0.65 * sketch.height, 0.55
    sketch.feet(-0.55, 0.55, bottom, COLOURS["brown"])
    sketch.fill(rounded(rectangle(-0.6, top, 0.6, bottom), 0.03), darker(sketch.body, 0.3))
    rows = {"straight": 1, "tapered": 2, "round": 3}[sketch.traits["shape"]]
    high = (bottom - top - 0.08) / rows
    handles = {
        "knob": ellipse((0, 0), 0.08),
        "angle": rectangle(-0.04, -0.16, 0.04, 0.16),
        "loop": rectangle(-0.14, -0.04, 0.14, 0.04),
    }
    for row in range(rows):
        for left, right, x in ((-0.53, -0.03, -0.12), (0.03, 0.53, 0.12)):
            sketch.coat(rectangle(left, top + 0.08 + row * high, right, top + (row + 1) * high))
            centre = (x, top + 0.04 + (row + 0.5) * high)
            sketch.paint(centre + handles[sketch.traits["handle"]], sketch.accent)


def chair(sketch: Sketch) -> None:
    """Shape is the back, handle is the arms."""
    slant = {"splayed": 0.14, "straight": 0.04, "plinth": 0.0}[sketch.traits["foot"]]
    for side in (-1, 1):
        sketch.stroke([(0.36 * side, 0.12), ((0.36 + slant) * side, 0.78)], 0.08, sketch.accent)
    if sketch.traits["foot"] == "plinth":
        sketch.stroke([(-0.36, 0.55), (0.36, 0.55)], 0.07, sketch.accent)
    sketch.coat(sketch.shell(-0.40, -0.85 * sketch.height, 0.40, 0.0))
    sketch.fill(rounded(rectangle(-0.48, 0.02, 0.48, 0.18), 0.06), darker(sketch.body, 0.2))
    if sketch.traits["handle"] != "knob":
        rise = -0.28 if sketch.traits["handle"] == "angle" else -0.16
        for side in (-1, 1):
            sketch.stroke([(0.48 * side, 0.06), (0.52 * side, rise), (0.34 * side, rise)], 0.07, sketch.accent)


def lamp(sketch: Sketch) -> None:
    """Shape is the shade, handle is a knob on the stem or a cord."""
    base = 0.62 * sketch.height
    sketch.stroke([(0, -0.2), (0, base)], 0.07, sketch.accent)
    if sketch.traits["handle"] == "knob":
        sketch.fill(ellipse((0, 0.4 * base), 0.16), sketch.accent)
    elif sketch.traits["handle"] == "angle":
        sketch.stroke([(0.24, -0.1), (0.24, 0.3)], 0.06, COLOURS["charcoal"])
    sketch.coat(sketch.shell(-0.50, -0.75, 0.50, -0.05))
    if sketch.traits["foot"] == "plinth":
        sketch.fill(rounded(rectangle(-0.3, base, 0.3, base + 0.1), 0.05), sketch.accent)
    else:
        wide = 0.34 if sketch.traits["foot"] == "splayed" else 0.16
        for end in (-wide, 0.0, wide):
            sketch.stroke([(0, base - 0.2), (end, base + 0.1)], 0.06, sketch.accent)


def sofa(sketch: Sketch) -> None:
    """Shape is the back, handle is the arms."""
    sketch.feet(-0.85, 0.85, 0.34, COLOURS["brown"])
    sketch.coat(sketch.shell(-0.85, -0.42 * sketch.height, 0.85, 0.30))
    sketch.fill(rounded(rectangle(-0.78, 0.02, 0.78, 0.36), 0.05), darker(sketch.body, 0.15))
    arms = {
        "angle": rectangle(-0.12, -0.30, 0.12, 0.36),
        "loop": rounded(rectangle(-0.14, -0.12, 0.14, 0.36), 0.2),
        "knob": ellipse((0, 0.08), 0.2, 0.28),
    }
    for x in (-0.92, 0.92):
        sketch.fill((x, 0.0) + arms[sketch.traits["handle"]], darker(sketch.body, 0.28))
    sketch.fill(rounded(rectangle(-0.62, -0.18, -0.26, 0.10), 0.06), sketch.accent)


def table(sketch: Sketch) -> None:
    """Shape is the top, handle is the drawer's."""
    bottom = 0.62 * sketch.height
    if sketch.traits["foot"] == "plinth":
        sketch.stroke([(0, -0.1), (0, bottom)], 0.14, sketch.accent)
        sketch.fill(rounded(rectangle(-0.4, bottom - 0.05, 0.4, bottom + 0.06), 0.05), sketch.accent)
    else:
        slant = 0.16 if sketch.traits["foot"] == "splayed" else 0.0
        for side in (-1, 1):
            sketch.stroke([(0.72 * side, -0.1), ((0.72 + slant) * side, bottom)], 0.09, sketch.accent)
    if sketch.traits["handle"] != "loop":
        sketch.fill(rectangle(-0.5, -0.06, 0.5, 0.16), darker(sketch.body, 0.25))
        is_knob = sketch.traits["handle"] == "knob"
        sketch.paint(ellipse((0, 0.05), 0.08) if is_knob else rectangle(-0.34, 0.01, 0.34, 0.10), sketch.accent)
    tops = {
        "straight": rectangle(-0.95, -0.22, 0.95, -0.04),
        "tapered": points([(-0.95, -0.22), (0.95, -0.22), (0.72, -0.02), (-0.72, -0.02)]),
        "round": ellipse((0, -0.13), 0.95, 0.16),
    }
    sketch.coat(tops[sketch.traits["shape"]])
