"""Garments: categories are silhouettes, items are told apart by cut, pattern and trim; an item comes in two colours."""

from __future__ import annotations

import numpy as np

from figurines.figure import Figure
from figurines.picture import Nuisance, Picture, photograph
from figurines.species import Options, Species, complexes_by_family, complexes_needed, in_halves
from figurines.tailoring import wearer

CATEGORIES = ("Blouses_Shirts", "Dresses", "Jackets_Coats", "Pants", "Shorts", "Skirts", "Sweaters", "Tees_Tanks")
CLOTHS = (
    *("olive", "slate", "scarlet", "teal", "ochre", "forest"),
    *("rose", "cobalt", "sand", "violet", "burgundy", "mint"),
)
TRAITS: Options = {
    "cloth colour": CLOTHS,
    "cloth pattern": ("plain", "stripes", "dots", "block", "check"),
    "pattern colour": ("white", "black", "lemon", "orange", "sky"),
    "neck": ("round", "vee", "collar"),
    "sleeve": ("short", "middle", "long"),
    "hem": ("short", "middle", "long"),
    "trim": ("none", "belt", "pocket", "buttons"),
}
TELLING = (("cloth pattern", "pattern colour", "sleeve", "hem"), ("neck", "trim"))
COMPLEX_SIZE = 3
VIEWS = ("front", "side", "back", "full")


def species(train_classes: int, test_classes: int, rng: np.random.Generator) -> list[Species]:
    """All items, the training items first; categories are met in both halves."""
    count = complexes_needed(train_classes, COMPLEX_SIZE) + complexes_needed(test_classes, COMPLEX_SIZE)
    families = [CATEGORIES[nth % len(CATEGORIES)] for nth in rng.permutation(count)]
    complexes = []
    for number, members in enumerate(complexes_by_family(families, TRAITS, TELLING, COMPLEX_SIZE, rng)):
        names = [f"{families[number]}_{number}{letter}" for letter in "abc"]
        kinds = [
            Species(name, families[number], "WOMEN", number, traits)
            for name, traits in zip(names, members, strict=True)
        ]
        complexes.append(kinds)
    return in_halves(complexes, train_classes, test_classes)


def draw(kind: Species, nth: int, rng: np.random.Generator) -> Figure:
    """Someone in the item: its views in turn, then the same views in its other colour."""
    shift = 5 * (nth // len(VIEWS) % 2)
    colour = CLOTHS[(CLOTHS.index(kind.traits["cloth colour"]) + shift) % len(CLOTHS)]
    return wearer(kind.family, kind.traits | {"cloth colour": colour}, VIEWS[nth % len(VIEWS)], rng)


def picture(kind: Species, nth: int, rng: np.random.Generator, nuisance: Nuisance) -> Picture:
    """One photograph of someone in the item."""
    scene = str(rng.choice(("studio", "studio", "street", "room", "meadow")))
    return photograph(draw(kind, nth, rng), scene, nuisance, rng, upright=1.0, obstacles=("twig", "card"))
