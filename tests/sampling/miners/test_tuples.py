from __future__ import annotations

import pytest
import torch

from lookalike.sampling.miners import draw_columns
from lookalike.sampling.miners.tuples import draw_triplets

OF_PICTURES = torch.tensor([4, 7, 4, 9, 7, 4, 4, 7])  # class 9 has one picture


def test_columns_are_drawn_in_proportion_to_their_weights_over_any_range():
    weights = torch.tensor([0.0, 0.5, 0.3, 0.2])
    rows = (weights.log() + 5000).repeat(4000, 1)
    counts = torch.bincount(draw_columns(rows, torch.Generator().manual_seed(0)), minlength=4) / 4000
    assert counts[0] == 0
    torch.testing.assert_close(counts, weights, rtol=0, atol=0.03)


def test_triplets_hold_a_partner_of_the_class_and_one_of_another():
    anchor, positive, negative = draw_triplets(OF_PICTURES, 100, seed=0)
    assert sorted(anchor.tolist()) == [0, 1, 2, 4, 5, 6, 7]  # each once, without the picture that is alone
    assert torch.equal(OF_PICTURES[anchor], OF_PICTURES[positive])
    assert (anchor != positive).all()
    assert (OF_PICTURES[anchor] != OF_PICTURES[negative]).all()


def test_triplets_depend_on_labels_and_seed_alone():
    first, again, other = (draw_triplets(OF_PICTURES, 5, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == (3, 5)


def test_every_partner_is_drawn_at_times():
    drawn = torch.cat([draw_triplets(OF_PICTURES, 7, seed) for seed in range(60)], dim=1)
    of_first = drawn[:, drawn[0] == 0]
    assert set(of_first[1].tolist()) == {2, 5, 6}
    assert set(of_first[2].tolist()) == {1, 3, 4, 7}


@pytest.mark.parametrize("labels", [[3, 3, 3], [1, 2, 3]])
def test_labels_without_any_triplet_are_refused(labels):
    with pytest.raises(ValueError, match=r"3 labels of \d classes make no triplet"):
        draw_triplets(torch.tensor(labels), 10, seed=0)
