from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lookalike.sampling.samplers import pair_in_turns
from sampler_batches import LABELS, class_counts, made


@pytest.mark.parametrize(
    ("sizes", "batch_size", "expected"),
    [([58] * 64 + [59] * 36 + [28], 128, 45), ([82] * 80 + [83] * 18, 64, 126)],
    ids=["CUB", "Cars"],
)
def test_balanced_epochs_are_as_long_as_published(sizes, batch_size, expected):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert len(labels) in (5864, 8054)
    assert len(made("balanced", labels, batch_size=batch_size)) == expected


def test_balanced_rounds_use_each_class_at_most_once():
    labels = np.repeat(np.arange(100), 8)
    sampler = made("balanced", labels, batch_size=128)
    assert sampler.batches_per_round == 3
    batches = list(sampler)
    for first in range(0, len(batches), 3):
        used = [label for batch in batches[first : first + 3] for label in class_counts(batch, labels)]
        assert len(set(used)) == len(used) == 96


def test_balanced_classes_give_all_their_rows_before_any_again():
    labels = np.repeat(np.arange(6), 8)  # two draws of 4 empty a class
    drawn = [np.array(batch).reshape(6, 4) for batch in made("balanced", labels, batches=2)]
    assert {row for batch in drawn for row in batch.ravel().tolist()} == set(range(48))


def test_balanced_classes_drop_leftovers_when_they_start_over():
    labels = np.repeat(np.arange(6), 6)
    batches = list(made("balanced", labels, batches=40))
    assert all(len(set(batch)) == 24 for batch in batches)
    assert Counter(row for batch in batches for row in batch).keys() == set(range(36))


def test_cyclic_batches_go_through_the_classes_in_order():
    batches = list(made("cyclic"))
    assert len(batches) == 12 * 4 // 6  # the largest class has 16 rows: 4 rounds
    names = np.unique(LABELS)
    for position, batch in enumerate(batches):
        first = position * 6 % 12
        assert set(class_counts(batch)) == {int(name) for name in names[first : first + 6]}
    order = [tuple(class_counts(batch)) for batch in batches[::2]]
    assert len(set(order)) > 1  # shuffled inside a batch


def test_cyclic_passes_use_a_class_of_full_size_once_and_drop_the_partial_batch():
    labels = np.repeat(np.arange(7), [9, 8, 8, 8, 8, 8, 3])
    batches = list(made("cyclic", labels, batch_size=20))
    assert len(batches) == 7 * 2 // 5
    counts = Counter(row for batch in batches for row in batch)
    assert all(count == 1 for row, count in counts.items() if labels[row] < 6)
    assert sum(counts[row] for row in range(49, 52)) >= 4  # the class of 3, with replacement


def test_avsl_batches_have_45_classes_of_4_rows():
    labels = np.repeat(np.arange(100), 58)
    sampler = made("cyclic", labels, batch_size=180)
    assert len(sampler) == 100 * 14 // 45
    assert all(sorted(class_counts(batch, labels).values()) == [4] * 45 for batch in sampler)


def test_grouped_epochs_repeat_the_same_groups_of_classes_with_other_rows():
    batches = list(made("grouped", batch_size=20, repeats=5))
    groups = Counter(frozenset(class_counts(batch)) for batch in batches)
    assert list(groups.values()) == [5, 5]  # 12 classes, 5 per group, 2 left out
    assert len(frozenset.union(*groups)) == 10
    assert len({tuple(sorted(batch)) for batch in batches}) == 10


def test_grouped_epochs_may_group_anew_for_each_batch():
    batches = list(made("grouped", batch_size=20, repeats=1, batches=30))
    assert len({frozenset(class_counts(batch)) for batch in batches}) > 20


@pytest.mark.parametrize(
    ("classes", "repeats", "batches", "expected"),
    [(100, 5, None, 15), (98, 10, None, 30), (3997, 5, 600, 600)],
    ids=["CUB", "Cars", "In-Shop"],
)
def test_grouped_epochs_are_as_long_as_published(classes, repeats, batches, expected):
    labels = np.repeat(np.arange(classes), 5)
    sampler = made("grouped", labels, batch_size=128, repeats=repeats, batches=batches)
    assert len(list(sampler)) == expected


# Published counts: classes of each super-category in the training half of mini-iNaturalist-2021, 50 images each.
INAT = [85, 71, 77, 743, 171, 1263, 123, 85, 2136, 92, 157]


def test_hierarchical_batches_have_two_coarse_classes_half_and_half():
    labels = np.repeat(np.arange(24), 5)
    coarse = labels % 4
    for batch in made("hierarchical", labels, coarse=coarse):
        halves = coarse[batch].reshape(2, 12)
        assert (halves == halves[:, :1]).all()
        assert halves[0, 0] != halves[1, 0]


def test_hierarchical_epochs_go_through_the_classes_evenly():
    labels = np.repeat(np.arange(24), 5)
    counts = Counter(
        label
        for batch in made("hierarchical", labels, coarse=labels % 2, half_batches=16)
        for label in class_counts(batch, labels)
    )
    assert set(counts.values()) == {2}  # 8 half-batches of 3 classes among 12


def test_hierarchical_epoch_of_mini_inaturalist_has_the_published_576_batches():
    labels = np.arange(sum(INAT)).repeat(50)
    coarse = np.arange(11).repeat(INAT).repeat(50)
    sampler = made("hierarchical", labels, batch_size=256, coarse=coarse, half_batches=1400)
    assert len(sampler) == 576
    pairs = Counter()
    for batch in sampler:
        pairs.update(np.unique(coarse[batch]).tolist())
    assert pairs[8] == 598 - 249  # plants have most half-batches, of which 249 find no partner
    assert pairs[0] == round(85 / 5003 * 1400)


def test_pairs_are_made_in_turns_until_one_owner_is_left():
    assert pair_in_turns([2, 1, 1]) == [(0, 1), (0, 2)]
    assert pair_in_turns([1, 1, 3]) == [(0, 1)]
    assert pair_in_turns([3, 3, 1]) == [(0, 1), (0, 2), (1, 0)]
    assert pair_in_turns([5, 0]) == []
