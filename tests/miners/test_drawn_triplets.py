from __future__ import annotations

from miner_batches import drawn, negatives, positives


def test_semihard_negatives_are_a_little_farther_than_the_positive_or_any(embeddings, distance):
    counts = drawn("semihard", embeddings)
    for a in range(8):
        for p in positives(a):
            near = {n for n in negatives(a) if distance[a][p] < distance[a][n] < distance[a][p] + 0.2}
            assert {n for x, y, n in counts if (x, y) == (a, p)} == (near or negatives(a))


def test_the_semihard_band_can_be_changed(embeddings, distance):
    for a, p, n in drawn("semihard", embeddings, margin=2.0):
        farther = [m for m in negatives(a) if distance[a][m] > distance[a][p]]
        assert n in farther or not farther


def test_softhard_pairs_overlap_or_are_any(embeddings, distance):
    counts = drawn("softhard", embeddings)
    restricted = 0
    for a in (0, 1, 2, 3, 4, 6, 7):
        far = {p for p in positives(a) if distance[a][p] > min(distance[a][n] for n in negatives(a))}
        near = {n for n in negatives(a) if distance[a][n] < max(distance[a][p] for p in positives(a))}
        assert {p for x, p, _ in counts if x == a} == (far or positives(a))
        assert {n for x, _, n in counts if x == a} == (near or negatives(a))
        restricted += 0 < len(near) < len(negatives(a))
    assert restricted > 0
