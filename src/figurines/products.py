"""Products: twelve kinds of household things, told apart by colours, shape, height, pattern, handle and foot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from figurines import appliances, furniture
from figurines.figure import Figure
from figurines.picture import Nuisance, Picture, photograph
from figurines.sketch import HEIGHTS, Sketch
from figurines.species import Options, Species, complexes_by_family, complexes_needed, in_halves

KINDS: dict[str, Callable[[Sketch], None]] = {  # in the order of the super-class ids
    "bicycle": furniture.bicycle,
    "cabinet": furniture.cabinet,
    "chair": furniture.chair,
    "coffee_maker": appliances.coffee_maker,
    "fan": appliances.fan,
    "kettle": appliances.kettle,
    "lamp": furniture.lamp,
    "mug": appliances.mug,
    "sofa": furniture.sofa,
    "stapler": appliances.stapler,
    "table": furniture.table,
    "toaster": appliances.toaster,
}
LARGE = ("bicycle", "cabinet", "chair", "sofa", "table")
TRAITS: Options = {
    "body colour": ("white", "slate", "scarlet", "teal", "ochre", "forest", "rose", "cobalt", "sand", "violet"),
    "accent colour": ("black", "mint", "orange", "sky", "burgundy", "lemon"),
    "shape": ("straight", "tapered", "round"),
    "height": tuple(HEIGHTS),
    "pattern": ("plain", "band", "dots", "stripes"),
    "handle": ("loop", "angle", "knob"),
    "foot": ("plinth", "straight", "splayed"),
}
TELLING = (("accent colour", "shape", "height", "pattern"), ("handle", "foot"))
COMPLEX_SIZE = 3


def species(train_classes: int, test_classes: int, rng: np.random.Generator) -> list[Species]:
    """All products in the order of their class ids: kind by kind in each half, all kinds in both halves."""
    kinds = list(KINDS)
    families = [
        kinds[index]
        for classes in (train_classes, test_classes)
        for index in sorted(nth % len(kinds) for nth in range(complexes_needed(classes, COMPLEX_SIZE)))
    ]
    complexes = []
    for number, members in enumerate(complexes_by_family(families, TRAITS, TELLING, COMPLEX_SIZE, rng)):
        kind = families[number]
        size = "large" if kind in LARGE else "small"
        complexes.append(
            [
                Species(f"{kind}_{number}{letter}", kind, size, number, traits)
                for letter, traits in zip("abc", members, strict=True)
            ]
        )
    return in_halves(complexes, train_classes, test_classes)


def draw(kind: Species, _nth: int, _rng: np.random.Generator) -> Figure:
    """One copy of the product: all are alike."""
    sketch = Sketch(kind.traits)
    KINDS[kind.family](sketch)
    sketch.mark("foot", (0.0, 0.6))
    return sketch


def picture(kind: Species, nth: int, rng: np.random.Generator, nuisance: Nuisance) -> Picture:
    """One photograph of one copy of the product."""
    scene = str(rng.choice(("room", "studio", "street") if kind.family in LARGE else ("table", "tiles", "studio")))
    return photograph(draw(kind, nth, rng), scene, nuisance, rng, upright=0.5, obstacles=("card", "twig", "pole"))
