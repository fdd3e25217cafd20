from __future__ import annotations

import torch

from miner_batches import LABELS, drawn, negatives, positives, seeded


def test_random_miner_draws_as_many_triplets_as_items_without_repeats(embeddings):
    anchor, positive, negative = seeded("random")(embeddings, LABELS)
    rows = set(zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True))
    assert len(rows) == len(anchor) == 8
    few = torch.tensor([0, 0, 1])
    assert len(seeded("random")(embeddings[:3], few)[0]) == 2  # all there are


def test_random_miner_reaches_all_triplets(embeddings):
    expected = {(a, p, n) for a in range(8) for p in positives(a) for n in negatives(a)}
    assert set(drawn("random", embeddings)) == expected
    found = zip(*[part.tolist() for part in seeded("all")(embeddings, LABELS)], strict=True)
    assert set(found) == expected


def test_hardest_takes_the_farthest_positive_and_the_nearest_negative_of_each_anchor(embeddings, distance):
    expected = [
        (a, max(positives(a), key=lambda p, a=a: distance[a][p]), min(negatives(a), key=lambda n, a=a: distance[a][n]))
        for a in (0, 1, 2, 3, 4, 6, 7)
    ]
    found = zip(*[part.tolist() for part in seeded("hardest")(5 * embeddings, LABELS)], strict=True)
    assert list(found) == expected


def test_hardest_clamped_takes_the_first_of_the_negatives_within_the_bound_of_the_batch(embeddings, distance):
    farthest = max(distance[a][p] for a in (0, 1, 2, 3, 4, 6, 7) for p in positives(a))
    for cutoff in (0.5, 0.9, 5.0):
        counts = drawn("hardest_clamped", embeddings, cutoff=cutoff)
        bound = min(cutoff, farthest)
        for a in (0, 1, 2, 3, 4, 6, 7):
            nearest = min(sorted(negatives(a)), key=lambda n, a=a, bound=bound: max(distance[a][n], bound))
            assert {n for x, _, n in counts if x == a} == {nearest}
            assert {p for x, p, _ in counts if x == a} == positives(a)
