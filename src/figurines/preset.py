"""The data sets: what they show, in which layout, and how many classes and pictures they have."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from figurines import birds, garments, layouts, objects, people, products, scenes, vehicles, wild
from figurines.collection import Collection
from figurines.cuhk03_layout import write_cuhk03
from figurines.inat_layout import write_inat
from figurines.pascal5i_layout import write_pascal5i
from figurines.picture import Nuisance, Picture
from figurines.species import Species


@dataclass(frozen=True)
class Preset:
    """One data set.

    Attributes:
        species: function of the numbers of training and test classes, gives all species in the order of their ids.
        picture: the n-th picture of a species.
        layout: writes the data set.
        train_classes: number of classes; they come first.
        test_classes: number of classes.
        images_per_class: numbers of pictures that a class may have, all equally likely.
        nuisance: how much the pictures of a species vary.
        images_per_test_class: the same of test classes, where they have other numbers.
    """

    species: Callable[[int, int, np.random.Generator], list[Species]]
    picture: Callable[[Species, int, np.random.Generator, Nuisance], Picture]
    layout: Callable[[Path, Collection], None]
    train_classes: int
    test_classes: int
    images_per_class: Sequence[int]
    nuisance: Nuisance
    images_per_test_class: Sequence[int] | None = None


PRESETS: dict[str, Preset] = {
    "birds": Preset(birds.species, birds.picture, layouts.write_cub, 36, 36, range(16, 21), Nuisance()),
    "vehicles": Preset(
        vehicles.species, vehicles.picture, layouts.write_cars, 36, 36, range(16, 21), Nuisance(rotation=5)
    ),
    "products": Preset(
        products.species,
        products.picture,
        layouts.write_products,
        144,
        144,
        (2, 2, 3, 3, 4, 4, 5, 6, 8, 12),
        Nuisance(),
    ),
    "shop": Preset(
        garments.species,
        garments.picture,
        layouts.write_shop,
        60,
        60,
        range(4, 9),
        Nuisance(extent=(0.84, 1.02), shift=0.03, rotation=4),
    ),
    "people": Preset(
        people.species,
        people.picture,
        write_cuhk03,
        30,
        30,
        range(8, 11),
        Nuisance(extent=(0.84, 1.06), shift=0.09, rotation=3, light=0.16, cast=0.05),
    ),
    "wild": Preset(wild.species, wild.picture, write_inat, 41, 38, (10,), Nuisance()),
    "scenes": Preset(
        objects.species, scenes.picture, write_pascal5i, 0, 20, (14,), Nuisance(extent=(0.58, 0.88), shift=0.12)
    ),
}


def collect(name: str, seed: int, preset: Preset) -> Collection:
    """The species of a data set and their pictures.

    A picture depends on the seed, the name, its species and its number, on nothing else.
    """
    species = preset.species(preset.train_classes, preset.test_classes, _generator(seed, name))
    of_test = preset.images_per_test_class or preset.images_per_class
    numbers = [preset.images_per_class if index < preset.train_classes else of_test for index in range(len(species))]
    shots = [int(_generator(seed, name, index).choice(possible)) for index, possible in enumerate(numbers)]

    def shoot(index: int, number: int) -> Picture:
        return preset.picture(species[index], number, _generator(seed, name, index, number), preset.nuisance)

    return Collection(species, preset.train_classes, shots, shoot)


def preset_named(name: str) -> Preset:
    """The preset of that name.

    Raises:
        ValueError: if there is none.
    """
    if name not in PRESETS:
        raise ValueError(f"preset {name!r} is unknown; known are {', '.join(PRESETS)}")
    return PRESETS[name]


def _generator(seed: int, name: str, *numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(name.encode()), *numbers])))
