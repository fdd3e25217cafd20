from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from figurines import birds, garments, people, products, vehicles
from figurines.bodies import BODIES
from figurines.builds import BUILDS
from figurines.figure import SUPERSAMPLING, Pose
from figurines.species import Species
from figurines.walkers import CUTS

SUBJECTS = {
    "birds": (birds, tuple(BUILDS), birds.TRAITS),
    "vehicles": (vehicles, tuple(BODIES), {**vehicles.MAKE_TRAITS, **vehicles.MODEL_TRAITS}),
    "products": (products, tuple(products.KINDS), products.TRAITS),
    "shop": (garments, garments.CATEGORIES, garments.TRAITS),
    "people": (people, CUTS, people.TRAITS),
}
FAMILIES = [(name, family) for name, (_, families, _) in SUBJECTS.items() for family in families]
SIDE = 64


def rendered(subject: ModuleType, family: str, traits: dict[str, str], seed: int) -> np.ndarray:
    """The figure alone in the middle of a picture in a colour that no figure has."""
    figure = subject.draw(Species("one", family, "group", 0, traits), 0, np.random.default_rng(seed))
    drawing = figure.draw(SIDE, SIDE, Pose((SIDE / 2, SIDE / 2), 0.85 * SIDE))
    image = Image.new("RGB", drawing.colour.size, (255, 0, 255))
    image.paste(drawing.colour, mask=drawing.mask)
    return np.asarray(image.reduce(SUPERSAMPLING), dtype=np.int64)


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_every_telling_trait_shows_in_every_family(name, family):
    subject, _, options = SUBJECTS[name]
    for trait in (*subject.TELLING[0], *subject.TELLING[1]):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            traits = {name: str(rng.choice(values)) for name, values in options.items()}
            first, second = (str(value) for value in rng.permutation(np.asarray(options[trait]))[:2])
            pictures = [rendered(subject, family, traits | {trait: value}, seed) for value in (first, second)]
            changed = (np.abs(pictures[0] - pictures[1]).max(axis=2) > 30).sum()
            assert changed >= 5, f"{trait}: {first} and {second} look alike with {traits}"


@pytest.mark.parametrize("name", SUBJECTS)
def test_traits_that_tell_species_apart_are_known_and_have_values(name):
    subject, _, options = SUBJECTS[name]
    for trait in (*subject.TELLING[0], *subject.TELLING[1]):
        assert len(set(options[trait])) == len(options[trait]) >= 2


def test_the_first_word_of_a_birds_trait_names_a_part():
    words = {part.split()[-1] for part in birds.PARTS}
    assert all(trait.split()[0] in words for trait in birds.TRAITS)
