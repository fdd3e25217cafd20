from __future__ import annotations

from collections import Counter

import numpy as np

from lookalike.samplers import pair_in_turns
from sampler_batches import class_counts, made

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
