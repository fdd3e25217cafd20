"""The wild: figurines of all kinds side by side, each kind in place of a super-category of mini-iNaturalist-2021.

Which of them train is not said here: the reader halves each super-category by its seeded rule. As with real genera,
confusable species may then be met in training and in testing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from figurines import birds, garments, products, vehicles
from figurines.picture import Nuisance, Picture
from figurines.species import Species


@dataclass(frozen=True)
class Realm:
    """A kind of figurines.

    Attributes:
        taxa: kingdom, phylum, class and order that the names of their folders state; the first three decide the
            super-category.
        complex_size: number of species that are confusable with each other.
        species: draws the species, called as that of ``Preset``.
        picture: draws a picture, called as that of ``Preset``.
    """

    taxa: str
    complex_size: int
    species: Callable[[int, int, np.random.Generator], list[Species]]
    picture: Callable[[Species, int, np.random.Generator, Nuisance], Picture]


REALMS = {  # by super-category, in the order of their taxa
    "Insects": Realm("Animalia_Arthropoda_Insecta_Vehicles", len(vehicles.YEARS), vehicles.species, vehicles.picture),
    "Birds": Realm("Animalia_Chordata_Aves_Birds", len(birds.PREFIXES), birds.species, birds.picture),
    "Mammals": Realm("Animalia_Chordata_Mammalia_Wearers", garments.COMPLEX_SIZE, garments.species, garments.picture),
    "Plants": Realm(
        "Plantae_Tracheophyta_Magnoliopsida_Things", products.COMPLEX_SIZE, products.species, products.picture
    ),
}


def species(train_classes: int, test_classes: int, rng: np.random.Generator) -> list[Species]:
    """All species in the order of their class ids, super-category by super-category; ``group`` is its name.

    The super-categories get one complex each in turn, so that they differ in size but hold whole complexes. Only the
    sum of the two numbers of classes matters.
    """
    turns = [name for name, realm in REALMS.items() for _ in range(realm.complex_size)]
    sizes = Counter(turns[nth % len(turns)] for nth in range(train_classes + test_classes))
    collected: list[Species] = []
    for name, realm in REALMS.items():
        known = 1 + max((kind.complex for kind in collected), default=-1)
        members = realm.species(sizes[name], 0, rng)
        collected += [replace(kind, group=name, complex=known + kind.complex) for kind in members]
    return collected


def picture(kind: Species, nth: int, rng: np.random.Generator, nuisance: Nuisance) -> Picture:
    """One photograph of the species, as in the data set of its kind."""
    return REALMS[kind.group].picture(kind, nth, rng, nuisance)
