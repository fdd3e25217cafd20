from __future__ import annotations

import numpy as np
import pytest
import torch

from lookalike.sampling.samplers import SAMPLERS
from sampler_batches import LABELS, SIZES, class_counts, made


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


def test_an_epoch_of_the_size_of_stanford_online_products_is_complete():
    random = np.random.default_rng(0)
    labels = np.concatenate([np.repeat(np.arange(11318), 2), random.integers(11318, size=59551 - 2 * 11318)])
    for name in sorted(SAMPLERS):
        options = {"half_batches": 1320} if name == "hierarchical" else {}
        sampler = made(name, labels, batch_size=128, coarse=labels % 12, **options)
        assert sum(len(batch) for batch in sampler) == 128 * len(sampler)


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
