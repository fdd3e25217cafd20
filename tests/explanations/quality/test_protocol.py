"""Triplets and partners are drawn by seed, and are the nearest that there are.

Values of pairs and trainings come to a mean and the error of both.
"""

import pytest
import torch

from lookalike.explanations.quality.protocol import nearest_triplets, random_partners


def space(count=40, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 8, generator=generator), torch.arange(count) % classes


def test_partners_are_the_nearest_of_two_loops():
    embeddings, labels = space()
    triplets = nearest_triplets(embeddings, labels, 25, seed=3)
    assert triplets.shape == (3, 25)
    for anchor, positive, negative in triplets.T.tolist():
        closest = {}
        for other in range(40):
            if other != anchor:
                similarity = float(torch.cosine_similarity(embeddings[anchor], embeddings[other], dim=0))
                same = bool(labels[other] == labels[anchor])
                closest[same] = max(closest.get(same, (-2, 0)), (similarity, other))
        assert (closest[True][1], closest[False][1]) == (positive, negative)


def test_the_draw_follows_its_seed_and_takes_no_anchor_twice():
    embeddings, labels = space()
    first, again, other = (nearest_triplets(embeddings, labels, 40, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert sorted(first[0].tolist()) == list(range(40))


def test_blocks_of_anchors_change_nothing(monkeypatch):
    embeddings, labels = space()
    whole = nearest_triplets(embeddings, labels, 40, seed=0)
    monkeypatch.setattr("lookalike.explanations.quality.protocol.BLOCK", 7)
    assert torch.equal(nearest_triplets(embeddings, labels, 40, seed=0), whole)


def test_the_first_of_equally_near_pictures_is_taken():
    embeddings = torch.ones(6, 3)
    triplets = nearest_triplets(embeddings, torch.tensor([0, 0, 0, 1, 1, 1]), 6, seed=0)
    for anchor, positive, negative in triplets.T.tolist():
        own = 0 if anchor < 3 else 3
        assert positive == own + (anchor == own)
        assert negative == 3 - own


def test_a_picture_alone_in_its_class_is_no_anchor():
    embeddings, _ = space(5)
    triplets = nearest_triplets(embeddings, torch.tensor([0, 0, 1, 2, 3]), 9, seed=0)
    assert sorted(triplets[0].tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("labels", "count", "said"),
    [
        ([0, 1, 2], 1, "3 labels of 3 classes make no triplet"),
        ([0, 0, 0], 1, "3 labels of 1 classes make no triplet"),
        ([0, 0], 1, "3 embeddings need as many labels, not 2"),
        ([0, 0, 1], 0, "count=0 must be at least 1"),
    ],
)
def test_what_makes_no_triplet_is_refused(labels, count, said):
    with pytest.raises(ValueError, match=said):
        nearest_triplets(torch.eye(3), torch.tensor(labels), count, seed=0)


def test_a_random_partner_is_any_other_picture_evenly():
    taken = torch.tensor([[4], [1], [0]]).expand(3, 3000)
    drawn = random_partners(taken, 6, seed=0)
    assert sorted(drawn.unique().tolist()) == [2, 3, 5]
    for picture in (2, 3, 5):
        assert abs(int((drawn == picture).sum()) - 1000) < 4 * (3000 * 2 / 9) ** 0.5
    assert torch.equal(drawn, random_partners(taken, 6, seed=0))
    assert not torch.equal(drawn, random_partners(taken, 6, seed=1))


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ([[0], [1], [2]], "tuples of 3 leave no other of 3 pictures"),
        ([[0], [3]], r"taken holds 0 to 3, it must stay in \[0, 2\]"),
        ([[1], [1]], "holds a picture twice"),
    ],
)
def test_partners_of_impossible_tuples_are_refused(taken, said):
    with pytest.raises(ValueError, match=said):
        random_partners(torch.tensor(taken), 3, seed=0)
