"""People: passers-by who are told apart by their clothes, hair and bags; two of a pair wear nearly the same."""

from __future__ import annotations

import numpy as np

from figurines.cameras import CAMERAS, camera_of, film
from figurines.figure import Figure
from figurines.picture import Nuisance, Picture
from figurines.species import Options, Species, complexes_by_family, complexes_needed, in_halves
from figurines.walkers import CUTS, GIRTHS, SKINS, walker

TRAITS: Options = {
    "top colour": ("scarlet", "teal", "mint", "forest", "rose", "cobalt", "violet", "slate"),
    "top pattern": ("plain", "stripes", "yoke", "block"),
    "pattern colour": ("white", "black", "lemon", "sky"),
    "sleeves": ("bare", "short", "long"),
    "legs colour": ("charcoal", "cobalt", "sand", "olive", "stone", "white"),
    "shoes colour": ("white", "black", "orange", "sky"),
    "hair cut": ("short", "long", "bun", "cap"),
    "hair colour": ("black", "brown", "ochre", "rust"),
    "bag kind": ("none", "rucksack", "satchel", "tote"),
    "bag colour": ("black", "orange", "brown", "burgundy"),
    "skin": tuple(SKINS),
    "build": tuple(GIRTHS),
}
TELLING = (("top pattern", "legs colour", "sleeves"), ("hair cut", "bag kind"))
COMPLEX_SIZE = 2


def species(train_classes: int, test_classes: int, rng: np.random.Generator) -> list[Species]:
    """All persons, those for training first; every cut of clothes is met in both halves."""
    count = complexes_needed(train_classes, COMPLEX_SIZE) + complexes_needed(test_classes, COMPLEX_SIZE)
    families = [CUTS[nth % len(CUTS)] for nth in range(count)]
    complexes = []
    for number, members in enumerate(complexes_by_family(families, TRAITS, TELLING, COMPLEX_SIZE, rng)):
        names = [f"person_{number}{letter}" for letter in "ab"]
        complexes.append(
            [
                Species(name, families[number], "people", number, traits)
                for name, traits in zip(names, members, strict=True)
            ]
        )
    return in_halves(complexes, train_classes, test_classes)


def draw(kind: Species, nth: int, rng: np.random.Generator) -> Figure:
    """The person as the camera of the n-th picture sees them."""
    return walker(kind.family, kind.traits, CAMERAS[camera_of(nth)].view, rng)


def picture(kind: Species, nth: int, rng: np.random.Generator, nuisance: Nuisance) -> Picture:
    """The person in the box of a detector; in some pictures a stranger walks past in front."""
    figure = draw(kind, nth, rng)
    stranger = _stranger(nth, rng) if rng.random() < nuisance.occlusion else None
    return film(figure, stranger, CAMERAS[camera_of(nth)], nuisance, rng)


def _stranger(nth: int, rng: np.random.Generator) -> Figure:
    traits = {trait: str(rng.choice(values)) for trait, values in TRAITS.items()}
    return walker(str(rng.choice(CUTS)), traits, CAMERAS[camera_of(nth)].view, rng)
