from __future__ import annotations

from collections import Counter

import numpy as np

from sampler_batches import LABELS, class_counts, made


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
