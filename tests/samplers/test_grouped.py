from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sampler_batches import class_counts, made


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
