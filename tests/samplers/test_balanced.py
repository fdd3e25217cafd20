from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sampler_batches import class_counts, made


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
