from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from figurines import PRESETS
from figurines.species import confusable, difference, distinct_complexes, in_halves

OPTIONS = {
    "body": ("red", "blue", "green"),
    "wing": ("bar", "plain"),
    "tail": ("long", "short"),
    "leg": ("thin", "thick"),
}
TELLING = (("body",), ("wing", "tail"))


def full(preset: str, seed: int = 0):
    chosen = PRESETS[preset]
    species = chosen.species(chosen.train_classes, chosen.test_classes, np.random.default_rng(seed))
    return species, chosen.train_classes


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "scenes"])  # whose classes are easily told
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_confusable_species_differ_in_one_or_two_traits(preset, seed):
    species, _ = full(preset, seed)
    complexes: dict[int, list] = {}
    for kind in species:
        complexes.setdefault(kind.complex, []).append(kind)
    for members in complexes.values():
        assert len(members) >= 2
        assert len({kind.family for kind in members}) == 1
        for first, second in combinations(members, 2):
            assert 1 <= len(difference(first.traits, second.traits)) <= 2


@pytest.mark.parametrize("preset", PRESETS)
def test_species_of_one_family_and_two_complexes_differ_in_three_traits_or_more(preset):
    species, _ = full(preset)
    for first, second in combinations(species, 2):
        if first.family == second.family and first.complex != second.complex:
            assert len(difference(first.traits, second.traits)) >= 3


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "wild"])  # which its reader halves
def test_no_complex_lies_across_training_and_test_classes(preset):
    species, border = full(preset)
    train, test = ({kind.complex for kind in half} for half in (species[:border], species[border:]))
    assert not train & test


@pytest.mark.parametrize("preset", PRESETS)
def test_names_are_unique(preset):
    species, _ = full(preset)
    assert len({kind.name for kind in species}) == len(species)


def test_halves_of_vehicles_share_all_body_types_and_at_most_the_make_at_the_border_of_their_names():
    species, border = full("vehicles")
    shared = {kind.group for kind in species[:border]} & {kind.group for kind in species[border:]}
    assert shared <= {species[border].group}
    assert {kind.family for kind in species[:border]} == {kind.family for kind in species[border:]}


def test_all_species_of_a_complex_differ_even_if_a_trait_has_few_values():
    for seed in range(20):
        members = confusable(OPTIONS, TELLING, 3, np.random.default_rng(seed))
        assert len({tuple(traits.values()) for traits in members}) == 3
        assert {traits["leg"] for traits in members} == {members[0]["leg"]}


def test_more_species_than_values_are_refused():
    with pytest.raises(ValueError, match=r"4 species cannot all differ in body and .* at most 3 values"):
        confusable(OPTIONS, TELLING, 4, np.random.default_rng(0))


def test_more_complexes_than_the_traits_allow_are_refused():
    with pytest.raises(ValueError, match="do not suffice for 50 complexes"):
        distinct_complexes(OPTIONS, TELLING, 2, 50, np.random.default_rng(0))


def test_too_many_vehicles_for_the_names_are_refused():
    with pytest.raises(ValueError, match="241 classes of vehicles are too many, at most 240"):
        PRESETS["vehicles"].species(121, 120, np.random.default_rng(0))


def test_halves_are_cut_to_the_wanted_numbers_of_classes():
    species, _ = full("birds")
    complexes = [[kind for kind in species if kind.complex == number] for number in range(4)]
    chosen = in_halves(complexes, 4, 5)
    assert [kind.complex for kind in chosen] == [0, 0, 0, 1, 2, 2, 2, 3, 3]
