"""What the drawings of household things share: shell, coat, handle and feet in the style that the traits prescribe."""

from __future__ import annotations

from figurines.figure import Figure
from figurines.geometry import Points, arc, band, ellipse, rectangle, rounded
from figurines.palette import COLOURS, Colour
from figurines.species import Traits

HEIGHTS = {"low": 0.8, "middle": 1.0, "tall": 1.25}


class Sketch(Figure):
    """A figure that knows the traits of its product.

    Attributes:
        traits: ``body colour``, ``accent colour``, ``shape``, ``height``, ``pattern``, ``handle`` and ``foot``.
        body: colour.
        accent: colour of the pattern and the smaller parts.
        height: factor around 1.
    """

    def __init__(self, traits: Traits) -> None:
        super().__init__()
        self.traits = traits
        self.body: Colour = COLOURS[traits["body colour"]]
        self.accent: Colour = COLOURS[traits["accent colour"]]
        self.height = HEIGHTS[traits["height"]]

    def shell(self, left: float, top: float, right: float, bottom: float) -> Points:
        """Outline of a container: straight, tapered or round."""
        inset = 0.16 * (right - left)
        if self.traits["shape"] == "tapered":
            return rounded([(left + inset, top), (right - inset, top), (right, bottom), (left, bottom)], 0.05)
        if self.traits["shape"] == "round":
            return ellipse(((left + right) / 2, (top + bottom) / 2), (right - left) / 2, (bottom - top) / 2)
        return rounded(rectangle(left, top, right, bottom), 0.05)

    def coat(self, outline: Points) -> None:
        """Add a part in the body's colour with the product's pattern on it."""
        (left, top), (right, bottom) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
        wide, high = right - left, bottom - top
        self.fill(outline, self.body)
        if self.traits["pattern"] == "band":
            self.paint(band(outline, top + 0.40 * high, top + 0.62 * high), self.accent)
        elif self.traits["pattern"] == "stripes":
            for share in (0.28, 0.48, 0.68):
                self.paint(band(outline, top + share * high, top + (share + 0.1) * high), self.accent)
        elif self.traits["pattern"] == "dots":
            radius = 0.07 * min(wide, high) + 0.02
            for x in (0.28, 0.50, 0.72):
                for y in (0.24, 0.50, 0.76):
                    self.paint(ellipse((left + x * wide, top + y * high), radius), self.accent)

    def handle(self, x: float, y: float, size: float) -> None:
        """Add a handle at the right of a body that ends at ``x``; at its left if ``size`` is negative."""
        if self.traits["handle"] == "loop":
            self.stroke(arc((x, y), 0.8 * size, abs(size), -90, 90), 0.09, self.accent)
        elif self.traits["handle"] == "angle":
            reach, high = x + 0.8 * size, abs(size)
            self.stroke([(x, y - high), (reach, y - high), (reach, y + high), (x, y + high)], 0.09, self.accent)
        else:
            self.fill(ellipse((x + 0.15 * size, y - 0.3 * abs(size)), 0.45 * abs(size)), self.accent)

    def feet(self, left: float, right: float, bottom: float, colour: Colour) -> None:
        """Add a plinth, or feet that are straight or splayed."""
        if self.traits["foot"] == "plinth":
            self.fill(rectangle(left, bottom, right, bottom + 0.08), colour)
            return
        slant = 0.06 if self.traits["foot"] == "splayed" else 0.0
        for x, side in ((left + 0.1, -1), (right - 0.1, 1)):
            self.stroke([(x, bottom - 0.02), (x + side * slant, bottom + 0.16)], 0.08, colour)
