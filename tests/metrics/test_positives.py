"""Lists of positives against loops."""

from __future__ import annotations

import pytest
import torch

from lookalike.metrics.positives import count_positives, find_positives


def positives_by_loops(query_labels, gallery_labels, *, self_match):
    return [
        [j for j, other in enumerate(gallery_labels.tolist()) if other == label and not (self_match and i == j)]
        for i, label in enumerate(query_labels.tolist())
    ]


@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("classes", [1, 4, 30])
def test_positives_are_the_items_of_the_label_without_the_query(classes, self_match):
    generator = torch.Generator().manual_seed(classes)
    gallery_labels = torch.randint(-3, classes - 3, (25,), generator=generator)
    query_labels = gallery_labels if self_match else torch.randint(-3, classes, (12,), generator=generator)
    expected = positives_by_loops(query_labels, gallery_labels, self_match=self_match)
    counts = count_positives(query_labels, gallery_labels, self_match=self_match)
    assert counts.tolist() == [len(items) for items in expected]
    queries = counts.nonzero().flatten()
    listed = find_positives(query_labels, gallery_labels, self_match=self_match).of(queries)
    for query, row in zip(queries.tolist(), listed.tolist(), strict=True):
        count = len(expected[query])
        assert row[:count] == expected[query]
        assert row[count:] == [expected[query][-1]] * (len(row) - count)


@pytest.mark.parametrize("self_match", [False, True])
def test_with_cameras_a_positive_was_seen_by_another_one(self_match):
    generator = torch.Generator().manual_seed(3)
    gallery_labels, gallery_cameras = (torch.randint(-2, high, (40,), generator=generator) for high in (5, 2))
    rows = slice(None) if self_match else slice(0, 11)
    query_labels, query_cameras = gallery_labels[rows], gallery_cameras[rows]
    counts = count_positives(
        query_labels,
        gallery_labels,
        self_match=self_match,
        query_cameras=query_cameras,
        gallery_cameras=gallery_cameras,
    )
    assert counts.tolist() == [
        sum(
            int(label == other and camera != seen)
            for other, seen in zip(gallery_labels.tolist(), gallery_cameras.tolist(), strict=True)
        )
        for label, camera in zip(query_labels.tolist(), query_cameras.tolist(), strict=True)
    ]


def test_labels_that_differ_are_refused_where_the_query_is_in_the_gallery():
    labels = torch.tensor([1, 2, 3])
    with pytest.raises(ValueError, match=r"differ \(3 and 2 labels\)"):
        count_positives(labels, labels[:2], self_match=True)
    with pytest.raises(ValueError, match=r"differ \(3 and 3 labels\)"):
        count_positives(labels, labels.flip(0), self_match=True)
