"""The colours of the figurines: one palette, so that every picture belongs to the same set."""

from __future__ import annotations

Colour = tuple[int, int, int]

COLOURS: dict[str, Colour] = {
    "black": (38, 40, 48),
    "white": (246, 243, 234),
    "cream": (236, 222, 190),
    "sand": (208, 178, 132),
    "stone": (160, 152, 142),
    "slate": (96, 110, 128),
    "charcoal": (66, 68, 78),
    "brown": (122, 84, 58),
    "rust": (176, 82, 46),
    "scarlet": (202, 52, 48),
    "orange": (230, 128, 46),
    "ochre": (206, 154, 58),
    "lemon": (242, 210, 76),
    "olive": (128, 134, 66),
    "forest": (54, 104, 74),
    "mint": (150, 204, 172),
    "teal": (36, 128, 132),
    "sky": (120, 180, 214),
    "cobalt": (48, 92, 172),
    "violet": (112, 84, 150),
    "rose": (218, 136, 144),
    "burgundy": (122, 38, 56),
}


def blend(first: Colour, second: Colour, share: float) -> Colour:
    """The colour ``share`` of the way from ``first`` to ``second``; ``share`` lies in [0, 1]."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def darker(colour: Colour, share: float = 0.25) -> Colour:
    """``colour`` mixed with black."""
    return blend(colour, COLOURS["black"], share)


def lighter(colour: Colour, share: float = 0.35) -> Colour:
    """``colour`` mixed with white."""
    return blend(colour, COLOURS["white"], share)


def contrasting(ground: Colour, on_light: Colour, on_dark: Colour) -> Colour:
    """The one of two colours that is seen on the ground."""
    return on_light if sum(ground) > 400 else on_dark
