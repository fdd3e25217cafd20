"""Birds: ten families of silhouettes, species told apart by plumage, beak, eye, crest and tail."""

from __future__ import annotations

import numpy as np

from figurines.builds import BUILDS
from figurines.figure import Figure
from figurines.picture import Nuisance, Picture, photograph
from figurines.plumage import bird
from figurines.species import Options, Species, complexes_by_family, complexes_needed, in_halves

# fmt: off
PARTS = (  # the fifteen of CUB-200-2011, in its order
    "back", "beak", "belly", "breast", "crown", "forehead", "left eye", "left leg", "left wing", "nape", "right eye",
    "right leg", "right wing", "tail", "throat",
)
PLACES = (
    "Marsh", "Heath", "Cliff", "Orchard", "Lagoon", "Meadow", "Canyon", "Tundra", "Grove", "Island", "Harbour",
    "Valley", "Desert", "Garden", "Thicket", "Summit",
)
# fmt: on
TRAITS: Options = {
    "back": ("brown", "slate", "olive", "cobalt", "teal", "sand", "forest", "violet"),
    "belly": ("cream", "lemon", "stone", "rose"),
    "breast": ("plain", "band", "spots", "rust", "cobalt"),
    "throat": ("plain", "black", "scarlet", "white"),
    "crown colour": ("plain", "black", "scarlet", "white", "lemon"),
    "crown crest": ("none", "peak", "fan"),
    "beak": ("charcoal", "orange", "lemon", "sky"),
    "eye": ("plain", "ring", "mask", "brow"),
    "wing": ("plain", "bar", "two bars", "patch", "pale"),
    "tail shape": ("square", "forked", "wedge"),
    "tail tip": ("plain", "white", "black"),
    "leg": ("charcoal", "orange", "sky"),
}
TELLING = (
    ("belly", "breast", "throat", "crown colour", "wing"),
    ("crown crest", "beak", "eye", "tail shape", "tail tip"),
)
PREFIXES = ("Northern", "Eastern", "Southern")  # of the species of one complex


def species(train_classes: int, test_classes: int, rng: np.random.Generator) -> list[Species]:
    """All species in the order of their class ids; families are met in both halves, complexes in one."""
    size = len(PREFIXES)
    count = complexes_needed(train_classes, size) + complexes_needed(test_classes, size)
    families = [list(BUILDS)[nth % len(BUILDS)] for nth in rng.permutation(count)]
    places = {family: iter(rng.permutation(np.asarray(PLACES)).tolist()) for family in BUILDS}
    complexes = []
    for number, members in enumerate(complexes_by_family(families, TRAITS, TELLING, size, rng)):
        family = families[number]
        surname, order = f"{next(places[family])}_{family}", BUILDS[family].order
        names = [f"{prefix}_{surname}" for prefix in PREFIXES]
        complexes.append(
            [Species(name, family, order, number, traits) for name, traits in zip(names, members, strict=True)]
        )
    return in_halves(complexes, train_classes, test_classes)


def draw(kind: Species, _nth: int, rng: np.random.Generator) -> Figure:
    """One individual of the species."""
    return bird(BUILDS[kind.family], kind.traits, rng)


def picture(kind: Species, nth: int, rng: np.random.Generator, nuisance: Nuisance) -> Picture:
    """One photograph of one individual in one of its habitats."""
    scene = str(rng.choice(BUILDS[kind.family].habitats))
    upright = 0.8 if kind.family == "Heron" else 0.25
    return photograph(draw(kind, nth, rng), scene, nuisance, rng, upright=upright, obstacles=("twig", "bush", "pole"))
