from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from lookalike.samplers import SAMPLERS, build_sampler, pair_in_turns

GROUPED = ["m_per_class", "balanced", "grouped", "cyclic", "hierarchical"]
# 12 classes of 5 to 16 rows, not sorted, with names that are no positions.
SIZES = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
LABELS = np.random.default_rng(0).permutation(np.repeat(100 + 10 * np.arange(12), SIZES))
COARSE = (LABELS // 10) % 2
# Published counts: classes of each super-category in the training half of mini-iNaturalist-2021, 50 images each.
INAT = [85, 71, 77, 743, 171, 1263, 123, 85, 2136, 92, 157]


def made(name: str, labels=LABELS, *, batch_size: int = 24, seed: int = 0, batches=None, coarse=None, **parameters):
    if name in GROUPED:
        parameters = {"per_class": 4, **parameters}
    if name == "hierarchical":
        coarse = COARSE if coarse is None else coarse
        parameters = {"half_batches": 20, **parameters}
    return build_sampler(
        name, parameters, labels=labels, batch_size=batch_size, coarse_labels=coarse, seed=seed, batches=batches
    )


def class_counts(batch: list[int], labels=LABELS) -> Counter[int]:
    return Counter(int(label) for label in np.asarray(labels)[batch])


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_batches_are_lists_of_row_numbers_as_many_as_announced(name):
    sampler = made(name)
    batches = list(sampler)
    assert len(batches) == len(sampler) > 0
    for batch in batches:
        assert isinstance(batch, list)
        assert all(type(row) is int and 0 <= row < len(LABELS) for row in batch)
        assert len(batch) == 24


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_an_epoch_depends_on_its_number_and_the_seed_alone(name):
    def epoch(sampler, number):
        sampler.set_epoch(number)
        return list(sampler)

    walked = made(name)
    first = [epoch(walked, number) for number in range(3)]
    assert epoch(made(name), 2) == first[2]
    assert epoch(walked, 0) == first[0]
    assert first[0] != first[1]
    assert epoch(made(name, seed=1), 0) != first[0]


@pytest.mark.parametrize("name", sorted(SAMPLERS))
@pytest.mark.parametrize("wanted", [2, 31])
def test_the_number_of_batches_can_be_cut_and_extended(name, wanted):
    sampler = made(name, batches=wanted)
    batches = list(sampler)
    assert len(sampler) == len(batches) == wanted
    assert len({tuple(batch) for batch in batches}) == wanted  # another pass, not the same one again


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"grouped", "hierarchical"}))
def test_a_longer_epoch_starts_like_a_shorter_one(name):
    assert list(made(name, batches=31))[:2] == list(made(name, batches=2))


@pytest.mark.parametrize("name", sorted(SAMPLERS))
@pytest.mark.parametrize("convert", [torch.from_numpy, list, np.asarray])
def test_labels_may_be_any_sequence_of_integers(name, convert):
    assert list(made(name, convert(LABELS))) == list(made(name))


@pytest.mark.parametrize("name", ["balanced", "grouped", "cyclic", "hierarchical"])
def test_batches_hold_distinct_classes_with_their_number_of_rows(name):
    for batch in made(name):
        assert set(class_counts(batch).values()) == {4}
        assert len(class_counts(batch)) == 6


@pytest.mark.parametrize("name", ["balanced", "grouped", "hierarchical"])
def test_rows_of_a_batch_do_not_repeat_where_classes_are_large_enough(name):
    for batch in made(name, batches=40):
        assert len(set(batch)) == 24


@pytest.mark.parametrize("name", ["balanced", "grouped", "cyclic", "hierarchical"])
def test_rows_of_a_class_stand_together(name):
    for batch in made(name):
        labels = LABELS[batch].reshape(-1, 4)
        assert (labels == labels[:, :1]).all()


@pytest.mark.parametrize("name", ["balanced", "grouped", "cyclic", "hierarchical"])
def test_classes_with_too_few_rows_are_drawn_from_with_replacement(name):
    labels = np.repeat(np.arange(12), [1, 2, 3, *[9] * 9])
    coarse = np.arange(12).repeat([1, 2, 3, *[9] * 9]) % 2
    seen = set()
    for batch in made(name, labels, batches=40, coarse=coarse):
        assert set(class_counts(batch, labels).values()) == {4}
        large = [row for row in batch if labels[row] >= 3]
        if name != "cyclic":
            assert len(set(large)) == len(large)
        seen |= set(batch)
    assert {0, 1, 2, 3, 4, 5} <= seen


def test_plain_batches_hold_each_row_at_most_once_per_pass():
    batches = list(made("plain"))
    assert len(batches) == len(LABELS) // 24 == 5
    rows = [row for batch in batches for row in batch]
    assert len(set(rows)) == len(rows)


def test_m_per_class_draws_classes_and_rows_with_replacement():
    batches = list(made("m_per_class", per_class=2, batches=2000))
    groups = np.array(batches).reshape(-1, 2)
    assert (LABELS[groups[:, 0]] == LABELS[groups[:, 1]]).all()
    shares = np.unique(LABELS[groups[:, 0]], return_counts=True)[1] / len(groups)
    np.testing.assert_allclose(shares, 1 / 12, atol=0.008)  # 24,000 draws: 4.5 sigma, whatever the class sizes
    assert (groups[:, 0] == groups[:, 1]).mean() == pytest.approx(np.mean([1 / size for size in SIZES]), abs=0.009)
    assert any(len(class_counts(batch)) < 12 for batch in batches)
    assert len(made("m_per_class")) == len(LABELS) // 24


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


def test_an_epoch_of_the_size_of_stanford_online_products_is_complete():
    random = np.random.default_rng(0)
    labels = np.concatenate([np.repeat(np.arange(11318), 2), random.integers(11318, size=59551 - 2 * 11318)])
    for name in sorted(SAMPLERS):
        options = {"half_batches": 1320} if name == "hierarchical" else {}
        sampler = made(name, labels, batch_size=128, coarse=labels % 12, **options)
        assert sum(len(batch) for batch in sampler) == 128 * len(sampler)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cycle", {}, "unknown sampler 'cycle'; known: balanced, cyclic, grouped"),
        ("plain", {"per_class": 4}, "sampler 'plain' has no parameter 'per_class'; known: none"),
        (
            "balanced",
            {"repeats": 4},
            "sampler 'balanced' has no parameter 'repeats'; known: classes_per_round, per_class",
        ),
        ("balanced", {"per_class": 5}, "batch_size=24 must be a multiple of per_class=5"),
        ("m_per_class", {"per_class": 0}, "per_class=0, both at least 1"),
        ("plain", {"batch_size": 0}, "batch_size=0 must be"),
        ("plain", {"batch_size": 500}, "126 rows in 12 classes fill no batch of 500"),
        ("plain", {"batches": 0}, "batches=0 must be at least 1"),
        ("plain", {"seed": -1}, "seed=-1 must be at least 0"),
        ("plain", {"labels": np.zeros((3, 2))}, r"labels of shape \(3, 2\)"),
        ("balanced", {"batch_size": 52}, "batch_size=52 with per_class=4 needs 13 classes, there are 12"),
        ("grouped", {"batch_size": 52}, "needs 13 classes, there are 12"),
        ("cyclic", {"batch_size": 52}, "needs 13 classes, there are 12"),
        ("grouped", {"repeats": 0}, "repeats=0 must be at least 1"),
        ("hierarchical", {"per_class": 8}, "half of batch_size=24 must be a multiple of per_class=8"),
        ("hierarchical", {"batch_size": 56}, "coarse class 0 has 6 classes, half a batch needs 7"),
        ("hierarchical", {"coarse": np.zeros(126)}, "coarse_labels name 1 coarse class, at least 2 are needed"),
        ("hierarchical", {"coarse": COARSE[:9]}, r"coarse_labels \(9,\) must be as long as labels \(126,\)"),
        ("hierarchical", {"coarse": np.arange(126) % 2}, "coarse_labels differ within a class"),
    ],
)
def test_impossible_requests_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        made(name, **options)


def test_missing_arguments_are_named():
    with pytest.raises(ValueError, match="sampler 'balanced' needs per_class"):
        build_sampler("balanced", {}, labels=LABELS, batch_size=24)
    with pytest.raises(ValueError, match="sampler 'hierarchical' needs coarse_labels"):
        build_sampler("hierarchical", {"per_class": 4}, labels=LABELS, batch_size=24)
