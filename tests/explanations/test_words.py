"""What an explanation says agrees with its numbers."""

import re

import pytest
import torch

from lookalike.explanations.explanation import Explanation, Nodes
from lookalike.explanations.words import colours, fewest, percent, place, sentence


def located(pairs, measure="cosine", negative=None):
    """An explanation of one pair by 3 x 3 places, or of a triplet."""
    value = pairs.sum(dim=(1, 2))
    maps = [pairs.sum(dim=2).view(-1, 3, 3), pairs.sum(dim=1).view(-1, 3, 3)]
    if negative is not None:
        maps = [maps[0] - negative.sum(dim=2).view(-1, 3, 3), maps[1], negative.sum(dim=1).view(-1, 3, 3)]
    return Explanation("activation", measure, value, tuple(maps), explained=value, pairs=pairs, grid=(3, 3))


def pairs_of(**added):
    """Pairs of places, given as ``q4g0``."""
    pairs = torch.zeros(1, 9, 9)
    for name, value in added.items():
        query, gallery = name[1:].split("g")
        pairs[0, int(query), int(gallery)] = value
    return pairs


@pytest.mark.parametrize(
    ("index", "grid", "expected"),
    [
        (0, (3, 3), "upper left"),
        (4, (3, 3), "centre"),
        (5, (3, 3), "middle right"),
        (15, (4, 4), "lower right"),
        (5, (4, 4), "centre"),
        (0, (1, 1), "centre"),
        (6, (7, 13), "upper middle"),
    ],
)
def test_places_are_named_by_thirds(index, grid, expected):
    assert place(index, grid) == expected


def test_the_fewest_places_are_taken_that_reach_the_share():
    assert fewest(torch.tensor([1.0, 4.0, 3.0, 2.0])) == ([1, 2], pytest.approx(0.7))
    assert fewest(torch.tensor([5.0, 5.0])) == ([0], pytest.approx(0.5))
    assert fewest(torch.tensor([3.0, -1.0, 2.0]), 1.0) == ([0, 2], pytest.approx(1.25))
    assert percent(0.614) == "61 %"


def test_colours_are_said_for_what_is_explained():
    """In a triplet the query's map is a difference, and in a distance what is above zero speaks against likeness."""
    pair, triplet = located(pairs_of(q4g0=0.4)), located(pairs_of(q4g0=0.4), negative=pairs_of(q1g1=0.1))
    assert colours(pair) == "Orange speaks for the likeness, blue against it."
    assert colours(triplet).startswith("In the query orange speaks for the gallery image, blue for the negative;")
    assert colours(located(pairs_of(q4g0=0.4), "distance")) == "Orange adds to the distance."
    far = located(pairs_of(q4g0=0.4), "distance", negative=pairs_of(q1g1=0.1))
    assert colours(far).startswith("In the query orange speaks for the negative, blue for the gallery image;")
    assert colours(Explanation("attention", "cosine", pair.value, pair.maps)) == "Orange is what it rests on."


def test_a_sum_is_traced_to_its_places_and_its_strongest_pair():
    words = sentence(located(pairs_of(q4g0=0.4, q1g8=0.2, q0g0=0.1)))
    assert words == (
        "Cosine 0.700; 57 % of it comes from 1 of 9 places of the query, most from its centre (57 %), upper middle "
        "(29 %), upper left (14 %); its centre and the other's upper left add most together, 57 %."
    )


def test_of_triplets_the_difference_is_traced():
    words = sentence(located(pairs_of(q4g0=0.6, q0g0=0.2), negative=pairs_of(q0g0=0.3)))
    assert words == (
        "Cosine 0.800, 0.500 more than to the negative (0.300); that difference is 0.600 that speaks for it less 0.100 "
        "that speaks against it; 100 % of what speaks for it comes from 1 of 9 places of the query, most from its "
        "centre (100 %)."
    )


def test_shares_of_a_sum_never_exceed_the_whole_by_much():
    for against in (0.0, 0.01, 0.1, 0.5, 0.9):
        words = sentence(located(pairs_of(q4g0=0.6, q1g0=0.4, q0g0=-against)))
        assert max(int(share) for share in re.findall(r"(\d+) %", words)) <= 110


def test_a_sum_below_zero_is_not_traced():
    assert sentence(located(pairs_of(q4g0=-0.4))) == (
        "Cosine -0.400; it is not above zero, so that no place speaks for it in sum."
    )


def test_maps_without_a_sum_are_told_by_how_much_of_the_picture_they_take():
    seen = torch.zeros(1, 6, 6)
    seen[0, 0, :3] = torch.tensor([2.0, 1.0, 1.0])
    assert sentence(Explanation("attention", "cosine", torch.tensor([0.5]), (seen, seen))) == (
        "Cosine 0.500; 50 % of its map lies on 3 % of the query, most in its upper left (75 %), upper middle (25 %)."
    )
    empty = Explanation("attention", "cosine", torch.tensor([0.5]), (0 * seen, seen))
    assert sentence(empty) == "Cosine 0.500; its map is empty."


def test_nodes_are_told_by_level_and_the_strongest_by_name():
    difference = torch.tensor([[[1.0, 3.0], [0.0, 6.0]]])
    nodes = Nodes(torch.ones(1, 2, 2), difference, torch.ones(1, 2, 2), (torch.eye(2),))
    seen = torch.ones(1, 3, 3)
    words = sentence(
        Explanation("graph", "distance", torch.tensor([10.0]), (seen, seen), torch.tensor([10.0]), nodes=nodes)
    )
    assert words.startswith(
        "Distance 10.000; levels 1 to 2 add 40 %, 60 % of it; the 4 strongest of 4 nodes add 100 %, "
        "first node 1 of level 2; "
    )


def test_of_several_pairs_each_has_its_own_words():
    both = located(torch.cat([pairs_of(q4g0=0.4), pairs_of(q0g0=0.9)]))
    assert sentence(both, 1) == sentence(located(pairs_of(q0g0=0.9)))
