from __future__ import annotations

import torch.nn.functional as F

from miner_batches import LABELS, negatives, positives, seeded


def test_npair_miner_takes_one_positive_and_all_others_as_negatives(embeddings):
    miner, seen = seeded("npair"), set()
    for _ in range(50):
        anchor, positive, other_anchor, negative = [part.tolist() for part in miner(embeddings, LABELS)]
        assert anchor == [0, 1, 2, 3, 4, 6, 7]
        for a, p in zip(anchor, positive, strict=True):
            assert p in positives(a)
            rest = [n for x, n in zip(other_anchor, negative, strict=True) if x == a]
            assert sorted(rest) == [j for j in range(8) if j not in (a, p)]
            seen.add((a, p))
    assert seen == {(a, p) for a in range(8) for p in positives(a)}


def test_multi_similarity_miner_keeps_pairs_by_its_rule(embeddings):
    unit = F.normalize(embeddings, dim=1)
    similarity = unit @ unit.T
    expected_positive, expected_negative = set(), set()
    for a in range(8):
        if positives(a):
            hardest = max(similarity[a, n] for n in negatives(a))
            expected_positive |= {(a, p) for p in positives(a) if similarity[a, p] - 0.1 < hardest}
            easiest = min(similarity[a, p] for p in positives(a))
            expected_negative |= {(a, n) for n in negatives(a) if similarity[a, n] + 0.1 > easiest}
    a, p, b, n = [part.tolist() for part in seeded("multi_similarity")(embeddings, LABELS)]
    assert set(zip(a, p, strict=True)) == expected_positive
    assert set(zip(b, n, strict=True)) == expected_negative
    assert 0 < len(expected_positive) < sum(len(positives(a)) for a in range(8))
