from __future__ import annotations

import pytest
import torch

from lookalike.methods.sam.tuples import mined_tuples

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])


def triplets(*rows: tuple[int, int, int]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor(rows).T)


def test_triplets_are_those_that_were_mined():
    mined = triplets((0, 1, 3), (1, 2, 5), (6, 7, 4))
    chosen = mined_tuples(mined, LABELS, "triplet", 10)
    assert sorted(chosen.T.tolist()) == [[0, 1, 3], [1, 2, 5], [6, 7, 4]]


def test_all_triplets_of_the_batch_stand_in_for_none_mined():
    chosen = mined_tuples(None, LABELS, "triplet", 1000)
    expected = [
        [a, p, n]
        for a in range(8)
        for p in range(8)
        for n in range(8)
        if a != p and LABELS[a] == LABELS[p] and LABELS[a] != LABELS[n]
    ]
    assert sorted(chosen.T.tolist()) == expected


def test_pairs_become_triplets_where_they_share_an_anchor():
    mined = (torch.tensor([0, 3]), torch.tensor([1, 4]), torch.tensor([0, 0, 5]), torch.tensor([4, 6, 1]))
    chosen = mined_tuples(mined, LABELS, "triplet", 10)
    assert sorted(chosen.T.tolist()) == [[0, 1, 4], [0, 1, 6]]


def test_positive_pairs_come_once_whatever_their_order():
    mined = triplets((0, 1, 3), (1, 0, 5), (0, 1, 6), (4, 3, 0))
    chosen = mined_tuples(mined, LABELS, "siamese_same", 10)
    assert sorted(chosen.T.tolist()) == [[0, 1], [3, 4]]


def test_second_negative_comes_from_a_third_class():
    mined = tuple(torch.stack(triplets((0, 1, 3), (1, 2, 5), (6, 7, 4))).repeat(1, 20))
    chosen = mined_tuples(mined, LABELS, "quadruplet", 60, torch.Generator().manual_seed(0))
    assert chosen.shape == (4, 60)
    a, p, first, second = LABELS[chosen]
    assert torch.equal(a, p)
    assert ((first != a) & (second != a) & (second != first)).all()
    assert len(chosen[3].unique()) == 8
    assert sorted(set(map(tuple, chosen[:3].T.tolist()))) == [(0, 1, 3), (1, 2, 5), (6, 7, 4)]


def test_second_negative_without_a_third_class_is_another_of_the_second():
    labels = torch.tensor([0, 0, 0, 1, 1])
    mined = triplets((0, 1, 3), (1, 2, 4), (3, 4, 0))
    chosen = mined_tuples(mined, labels, "quadruplet", 10, torch.Generator().manual_seed(0))
    by_triplet = {tuple(column[:3]): column[3] for column in chosen.T.tolist()}
    assert by_triplet[(0, 1, 3)] == 4
    assert by_triplet[(1, 2, 4)] == 3
    assert by_triplet[(3, 4, 0)] in (1, 2)


def test_triplets_without_a_second_negative_give_no_quadruplet():
    labels = torch.tensor([0, 0, 0, 1])
    assert mined_tuples(None, labels, "quadruplet", 10).shape == (4, 0)
    assert mined_tuples(None, labels, "triplet", 10).shape == (3, 6)


@pytest.mark.parametrize(("kind", "roles"), [("siamese_same", 2), ("triplet", 3), ("quadruplet", 4)])
def test_choice_is_capped_random_and_repeatable(kind, roles):
    choices = [
        mined_tuples(None, LABELS, kind, 3, torch.Generator().manual_seed(seed)).tolist() for seed in (0, 0, 1, 2, 3)
    ]
    assert all(len(choice) == roles and len(choice[0]) == 3 for choice in choices)
    assert choices[0] == choices[1]
    assert any(choice != choices[0] for choice in choices[2:])
    assert mined_tuples(None, LABELS, kind, 0).shape == (roles, 0)


@pytest.mark.parametrize("kind", ["siamese_same", "triplet", "quadruplet"])
def test_a_batch_without_tuples_gives_none(kind):
    assert mined_tuples(None, torch.arange(5), kind, 3).shape[1] == 0
    empty = torch.zeros(0, dtype=torch.int64)
    assert mined_tuples((empty, empty, empty), LABELS, kind, 3).shape[1] == 0


def test_pairs_of_different_images_and_negative_limits_are_refused():
    with pytest.raises(ValueError, match="kind: unknown 'siamese_different', did you mean"):
        mined_tuples(None, LABELS, "siamese_different", 3)
    with pytest.raises(ValueError, match="limit=-1 is negative"):
        mined_tuples(None, LABELS, "triplet", -1)
