"""Attention of episodes against one tuple at a time."""

import pytest
import torch
from torch import nn

from lookalike.methods.sam.attention import attention_maps
from lookalike.methods.sam.head import LinearHead
from lookalike.segmentation.attention import episode_maps


@pytest.fixture
def head():
    torch.manual_seed(0)
    return LinearHead(nn.Linear(6, 5))


def normalised(maps):
    return (maps - maps.min()) / (maps.max() - maps.min() + 1e-8)


def features(*shape, seed=1):
    return torch.rand(*shape, 6, 4, 3, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shots", [1, 3])
@pytest.mark.parametrize("ways", [1, 2])
def test_maps_are_means_over_aligned_tuples(head, ways, shots):
    query, supports = features(2), features(2, ways, shots, seed=2)
    of_query, of_supports = episode_maps(query, supports, head)
    assert of_query.shape == (2, ways, 4, 3)
    for episode in range(2):
        for way in range(ways):
            expected = torch.zeros(4, 3)
            for shot in range(shots):
                roles = [query[episode], supports[episode, way, shot]]
                if ways == 2:
                    roles.append(supports[episode, 1 - way, shot])
                kind = "triplet" if ways == 2 else "siamese_same"
                maps = attention_maps(torch.stack(roles)[:, None], head, kind)
                expected += normalised(maps[0, 0]) / shots
                assert torch.allclose(of_supports[episode, way, shot], normalised(maps[1, 0]), atol=1e-5)
            assert torch.allclose(of_query[episode, way], expected, atol=1e-5)


def test_maps_are_at_most_one_and_zero_without_any_attention(head):
    of_query, of_supports = episode_maps(torch.ones(1, 6, 4, 3), features(1, 2, 2), head)
    assert of_supports.min() >= 0
    assert of_supports.max() <= 1
    assert (of_query == 0).all()  # an even picture has attention nowhere


def test_three_classes_are_refused(head):
    with pytest.raises(ValueError, match="supports of 3 classes, 1 or 2 are allowed"):
        episode_maps(features(1), features(1, 3, 1), head)
