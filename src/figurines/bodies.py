"""Body types of cars: their silhouettes.

The ground is ``y = 0``, the rear bumper is at ``x = -1``, the front bumper at ``x = 1``.
"""

from __future__ import annotations

from dataclasses import dataclass

Outline = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Body:
    """A body type.

    Attributes:
        lower: outline without the cabin, from the rear sill over the belt line to the front sill.
        cabin: outline from the rear to the front, standing on the belt line.
        glass: outline of the windows.
        pillars: x of the pillars between the windows, at the belt and at the roof.
        door: x of the seam behind the front door.
    """

    lower: Outline
    cabin: Outline
    glass: Outline
    pillars: Outline
    door: float

    @property
    def bottom(self) -> float:
        """Height of the sill."""
        return self.lower[0][1]

    @property
    def belt(self) -> float:
        """Height of the lower edge of the windows, or of what is above the doors."""
        return max(y for _, y in self.lower if y < -0.5)

    @property
    def top(self) -> float:
        """Height of the roof."""
        return min(y for _, y in self.cabin)

    @property
    def stern(self) -> tuple[float, float]:
        """Where a spoiler sits: the end of the roof where the cabin reaches the tail, else the end of the deck."""
        reaches_tail = self.cabin[0][0] < -0.88 and self.top < -0.85
        return (self.cabin[1][0], self.top) if reaches_tail else (-0.94, min(y for x, y in self.lower if x < -0.9))


# fmt: off
_LOW = ((-1.0, -0.14), (-1.0, -0.46), (-0.94, -0.56), (0.44, -0.57), (0.86, -0.49), (1.0, -0.40), (1.0, -0.14))
_TALL = ((-1.0, -0.18), (-1.0, -0.60), (-0.97, -0.66), (0.46, -0.66), (0.90, -0.60), (1.0, -0.50), (1.0, -0.18))
BODIES: dict[str, Body] = {
    "Sedan": Body(
        _LOW, ((-0.66, -0.54), (-0.40, -0.86), (0.14, -0.87), (0.48, -0.54)),
        ((-0.54, -0.58), (-0.36, -0.80), (0.11, -0.81), (0.38, -0.58)), ((-0.06, -0.08),), -0.06),
    "Coupe": Body(
        _LOW, ((-0.92, -0.54), (-0.36, -0.82), (0.06, -0.83), (0.42, -0.54)),
        ((-0.66, -0.58), (-0.33, -0.77), (0.04, -0.78), (0.32, -0.58)), ((-0.20, -0.18),), -0.24),
    "Hatchback": Body(
        ((-0.86, -0.14), (-0.92, -0.50), (-0.84, -0.60), (0.50, -0.60), (0.88, -0.52), (0.98, -0.42), (0.98, -0.14)),
        ((-0.90, -0.56), (-0.70, -0.92), (0.12, -0.93), (0.52, -0.56)),
        ((-0.74, -0.62), (-0.60, -0.86), (0.09, -0.87), (0.40, -0.62)), ((-0.18, -0.18),), -0.18),
    "Wagon": Body(
        _LOW, ((-1.0, -0.54), (-0.90, -0.88), (0.12, -0.89), (0.46, -0.54)),
        ((-0.90, -0.58), (-0.82, -0.82), (0.09, -0.83), (0.36, -0.58)), ((-0.46, -0.46), (-0.06, -0.08)), -0.06),
    "Convertible": Body(
        _LOW, ((0.22, -0.54), (0.10, -0.80), (0.15, -0.82), (0.48, -0.54)),
        ((0.27, -0.58), (0.17, -0.76), (0.38, -0.58)), (), -0.24),
    "SUV": Body(
        _TALL, ((-0.96, -0.62), (-0.86, -1.06), (0.14, -1.07), (0.46, -0.62)),
        ((-0.86, -0.68), (-0.78, -0.99), (0.11, -1.00), (0.36, -0.68)), ((-0.48, -0.48), (-0.06, -0.08)), -0.06),
    "Cab": Body(
        _TALL, ((-0.30, -0.62), (-0.26, -1.03), (0.18, -1.04), (0.48, -0.62)),
        ((-0.20, -0.68), (-0.17, -0.96), (0.15, -0.97), (0.38, -0.68)), ((0.06, 0.05),), -0.26),
    "Minivan": Body(
        ((-0.98, -0.16), (-0.98, -0.56), (-0.96, -0.62), (0.56, -0.62), (0.92, -0.50), (1.0, -0.42), (1.0, -0.16)),
        ((-0.98, -0.58), (-0.88, -1.02), (0.20, -1.02), (0.66, -0.58)),
        ((-0.88, -0.64), (-0.80, -0.95), (0.17, -0.95), (0.52, -0.64)), ((-0.46, -0.46), (0.04, 0.02)), -0.42),
    "Van": Body(
        ((-1.0, -0.16), (-1.0, -0.66), (-0.98, -0.70), (0.70, -0.68), (0.94, -0.58), (1.0, -0.48), (1.0, -0.16)),
        ((-1.0, -0.62), (-0.97, -1.20), (0.40, -1.20), (0.76, -0.64)),
        ((0.16, -0.70), (0.16, -1.10), (0.36, -1.10), (0.62, -0.70)), ((0.30, 0.30),), -0.30),
}
# fmt: on
