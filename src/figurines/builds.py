"""Families of birds: their proportions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Build:
    """Proportions of a family; lengths in units of the body's length, angles in degrees.

    Attributes:
        order: the group above the family.
        depth: depth of the body.
        tilt: how far the breast is raised.
        head: radius.
        reach: way from the shoulder to the middle of the head, forwards and upwards.
        beak: length, depth at its base, and drop of its tip.
        tail: length, width, and how far it hangs below the line of the body.
        leg: visible length.
        habitats: scenes it is met in.
    """

    order: str
    depth: float
    tilt: float
    head: float
    reach: tuple[float, float]
    beak: tuple[float, float, float]
    tail: tuple[float, float, float]
    leg: float
    habitats: tuple[str, ...]


# fmt: off
BUILDS: dict[str, Build] = {
    "Finch": Build(
        "Songbirds", 0.66, 24, 0.28, (0.08, 0.13), (0.16, 0.21, 0.02),
        (0.36, 0.15, 10), 0.17, ("branch", "meadow")),
    "Warbler": Build(
        "Songbirds", 0.50, 14, 0.22, (0.13, 0.11), (0.18, 0.09, 0.00),
        (0.42, 0.13, 2), 0.22, ("branch", "meadow")),
    "Jay": Build(
        "Songbirds", 0.50, 30, 0.24, (0.10, 0.17), (0.23, 0.15, 0.02),
        (0.68, 0.17, 14), 0.20, ("branch", "meadow")),
    "Sparrowhawk": Build(
        "Hunters", 0.52, 58, 0.21, (0.05, 0.15), (0.14, 0.16, 0.07),
        (0.50, 0.19, 10), 0.12, ("branch", "cliff")),
    "Kingfisher": Build(
        "Hunters", 0.56, 42, 0.30, (0.08, 0.17), (0.44, 0.15, 0.00),
        (0.24, 0.15, 12), 0.08, ("branch", "cliff")),
    "Woodpecker": Build(
        "Climbers", 0.44, 66, 0.22, (0.08, 0.16), (0.29, 0.10, 0.00),
        (0.40, 0.15, -6), 0.08, ("trunk",)),
    "Duck": Build(
        "Waterfowl", 0.46, 4, 0.20, (0.14, 0.30), (0.23, 0.12, 0.03),
        (0.18, 0.17, -24), 0.10, ("pond", "meadow")),
    "Gull": Build(
        "Waterfowl", 0.42, 8, 0.19, (0.14, 0.20), (0.21, 0.10, 0.03),
        (0.34, 0.14, 0), 0.26, ("shore", "cliff")),
    "Heron": Build(
        "Waders", 0.42, 28, 0.17, (0.20, 0.48), (0.40, 0.11, 0.02),
        (0.28, 0.18, 8), 0.46, ("shore", "pond")),
    "Plover": Build(
        "Waders", 0.54, 16, 0.23, (0.10, 0.15), (0.15, 0.09, 0.00),
        (0.26, 0.13, 4), 0.36, ("shore", "meadow")),
}
# fmt: on
