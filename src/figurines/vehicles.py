"""Vehicles: body type is the silhouette, make is lamps, line and badge, model and year are wheels, trim and roof.

A model is sold in three paints: which of them a car has is chance.
"""

from __future__ import annotations

import numpy as np

from figurines.bodies import BODIES
from figurines.bodywork import car
from figurines.figure import Figure
from figurines.palette import COLOURS
from figurines.picture import Nuisance, Picture, photograph
from figurines.species import Options, Species, complexes_needed, distinct_complexes

MAKE_TRAITS: Options = {
    "headlamp": ("round", "slit", "square", "drop"),
    "taillamp": ("block", "strip", "round"),
    "side line": ("none", "crease", "chrome", "rising"),
    "badge": ("disc", "diamond", "bar", "wedge"),
}
PAINTS: dict[str, tuple[str, ...]] = {
    "sober": ("white", "stone", "charcoal"),
    "vivid": ("scarlet", "cobalt", "lemon"),
    "earth": ("olive", "brown", "sand"),
    "ocean": ("teal", "sky", "mint"),
    "sunset": ("orange", "scarlet", "ochre"),
    "classic": ("forest", "cream", "rust"),
    "candy": ("violet", "rose", "lemon"),
    "night": ("charcoal", "cobalt", "burgundy"),
}
MODEL_TRAITS: Options = {
    "wheel": ("five spokes", "disc", "dark", "white wall", "ring"),
    "sill": ("plain", "dark", "chrome"),
    "roof colour": ("paint", "black", "white"),
    "roof rack": ("none", "rails", "box"),
    "bonnet": ("plain", "vent", "stripe"),
    "tail spoiler": ("none", "lip", "wing"),
    "door": ("two", "four", "panel"),
    "flank": ("plain", "low stripe", "twin stripes", "two tone"),
    "paint": tuple(PAINTS),
}
TELLING = (("wheel", "sill", "roof colour", "flank"), ("roof rack", "bonnet", "tail spoiler", "door"))
YEARS = (2007, 2012)
MODELS_PER_MAKE = 5
# fmt: off
MAKES = (
    "Aldera", "Borealis", "Corvane", "Delmont", "Everly", "Fennick", "Garland", "Halcyon", "Ivorne", "Jupiter",
    "Kestrel", "Lorimer", "Mistral", "Norland", "Oriole", "Pallas", "Quillon", "Rushmere", "Sabley", "Tarleton",
    "Umbria", "Vantor", "Westmark", "Yarrow",
)
MODELS = (
    "Atlas", "Breeze", "Comet", "Dune", "Echo", "Flint", "Gale", "Harrier", "Iris", "Juno", "Karst", "Linnet", "Mesa",
    "Nova", "Opal", "Pike", "Quest", "Rally",
)
# fmt: on


def species(train_classes: int, test_classes: int, rng: np.random.Generator) -> list[Species]:
    """All models and years in the order of their class ids, sorted by name; the years of a model are confusable.

    Raises:
        ValueError: if there are more classes than names of makes allow.
    """
    classes = train_classes + test_classes
    most = len(MAKES) * MODELS_PER_MAKE * len(YEARS)
    if classes > most:
        raise ValueError(f"{classes} classes of vehicles are too many, at most {most} have a name")
    models = complexes_needed(classes, len(YEARS))
    signatures = distinct_complexes(
        MAKE_TRAITS, (tuple(MAKE_TRAITS),) * 2, 1, complexes_needed(models, MODELS_PER_MAKE), rng, apart=2
    )
    names, bodies = rng.permutation(np.asarray(MODELS)).tolist(), list(BODIES)
    named = []
    for number, years in enumerate(distinct_complexes(MODEL_TRAITS, TELLING, len(YEARS), models, rng, apart=3)):
        body, make = bodies[number % len(bodies)], number // MODELS_PER_MAKE
        for year, traits in zip(YEARS, years, strict=True):
            name = f"{MAKES[make]} {names[number % len(names)]} {body} {year}"
            named.append(Species(name, body, MAKES[make], number, signatures[make][0] | traits))
    return sorted(named, key=lambda kind: kind.name)[:classes]


def draw(kind: Species, _nth: int, rng: np.random.Generator) -> Figure:
    """One car of the model, in one of its paints."""
    paint = str(rng.choice(PAINTS[kind.traits["paint"]]))
    return car(BODIES[kind.family], kind.traits, COLOURS[paint])


def picture(kind: Species, nth: int, rng: np.random.Generator, nuisance: Nuisance) -> Picture:
    """One photograph of one car on a road."""
    scene = str(rng.choice(("street", "country", "coast")))
    return photograph(draw(kind, nth, rng), scene, nuisance, rng, upright=0.0, obstacles=("pole", "bush", "twig"))
