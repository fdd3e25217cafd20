"""Sampling of triplets: what each must be, and how often."""

import math
from functools import partial

import pytest
import torch

from lookalike.miners.per_anchor import distance_weighted_triplets, hardest_triplets

LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 3])


@pytest.fixture
def distance():
    points = torch.randn(7, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    points = torch.nn.functional.normalize(points)
    return (points[:, None] - points).square().sum(-1)


def looped_negative(distance, labels, anchor, cutoff):
    largest = 0.0  # between any two images of one class, whosever class it is
    for i in range(len(labels)):
        for j in range(len(labels)):
            if i != j and labels[i] == labels[j]:
                largest = max(largest, float(distance[i, j]))
    floor = min(cutoff, largest)
    raised = [(max(float(d), floor), i) for i, d in enumerate(distance[anchor]) if labels[i] != labels[anchor]]
    return min(raised)[1]


@pytest.mark.parametrize("cutoff", [0.0, 0.5, 1.5, 4.0])
def test_hardest_triplets_equal_the_loops(distance, cutoff):
    triplets = hardest_triplets(distance, LABELS, cutoff, torch.Generator().manual_seed(0))
    assert triplets[:, 0].tolist() == [0, 1, 2, 4, 5]  # classes 2 and 3 have a single image
    for anchor, positive, negative in triplets.tolist():
        assert LABELS[anchor] == LABELS[positive]
        assert anchor != positive
        assert negative == looped_negative(distance, LABELS, anchor, cutoff)


def test_the_lowest_index_wins_among_negatives_that_are_too_near():
    distance = torch.tensor([[0.0, 1.0, 0.4, 0.1], [1.0, 0.0, 3, 3], [0.4, 3, 0, 3], [0.1, 3, 3, 0]])
    labels = torch.tensor([0, 0, 1, 2])
    assert hardest_triplets(distance, labels, 0.5)[0].tolist() == [0, 1, 2]
    assert hardest_triplets(distance, labels, 0.3)[0].tolist() == [0, 1, 3]


def test_the_floor_is_that_of_the_whole_batch_and_not_of_the_anchors_class():
    # The anchor's own positive is at 0.1, but another class of the batch spans 0.4: negatives up to there count alike.
    distance = torch.tensor(
        [
            [0.0, 0.1, 0.3, 0.2],
            [0.1, 0.0, 0.9, 0.9],
            [0.3, 0.9, 0.0, 0.4],
            [0.2, 0.9, 0.4, 0.0],
        ]
    )
    labels = torch.tensor([0, 0, 1, 1])
    assert hardest_triplets(distance, labels, 0.5)[0].tolist() == [0, 1, 2]
    assert hardest_triplets(distance, labels, 0.25)[0].tolist() == [0, 1, 3]


@pytest.mark.parametrize("sample", [hardest_triplets, partial(distance_weighted_triplets, dim=8)])
def test_positives_are_uniform_over_the_rest_of_the_class(distance, sample):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([sample(distance, LABELS, generator=generator)[0, 1] for _ in range(400)])
    assert set(drawn.tolist()) == {2, 5}
    assert abs(int((drawn == 2).sum()) - 200) < 50  # five standard deviations


@pytest.mark.parametrize(
    "labels", [torch.zeros(7, dtype=torch.int64), torch.arange(7)], ids=["one class", "one image per class"]
)
def test_without_positive_or_negative_there_is_no_triplet(distance, labels):
    for triplets in (hardest_triplets(distance, labels), distance_weighted_triplets(distance, labels, 8)):
        assert triplets.shape == (0, 3)
        assert triplets.dtype == torch.int64


def test_a_generator_repeats_the_draw(distance):
    first, second = (hardest_triplets(distance, LABELS, generator=torch.Generator().manual_seed(8)) for _ in range(2))
    assert torch.equal(first, second)


def test_distance_weights_are_the_inverse_density_of_distances():
    dim, squared = 4, [0.09, 0.49, 1.0, 1.69, 3.0]
    labels = torch.tensor([0, 0, 1, 2, 3, 4, 5])
    distance = torch.zeros(7, 7, dtype=torch.float64)
    distance[0, 2:] = torch.tensor(squared, dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    draws = torch.stack(
        [distance_weighted_triplets(distance, labels, dim, generator=generator)[0] for _ in range(4000)]
    )
    weights = []
    for value in squared:
        d = max(math.sqrt(value), 0.5)
        weights.append(0.0 if d > 1.4 else d ** (2 - dim) * (1 - d * d / 4) ** ((3 - dim) / 2))
    for index, weight in enumerate(weights):
        share = float((draws[:, 2] == index + 2).double().mean())
        assert share == pytest.approx(weight / sum(weights), abs=0.04)  # five standard deviations


def test_distance_weighting_draws_far_negatives_where_all_are_far():
    distance = torch.full((3, 3), 3.5)
    triplets = distance_weighted_triplets(distance, torch.tensor([0, 0, 1]), 512)
    assert triplets.tolist() == [[0, 1, 2], [1, 0, 2]]


def test_distance_weights_of_a_large_embedding_do_not_overflow():
    distance = torch.rand(20, 20, generator=torch.Generator().manual_seed(0)) * 2
    triplets = distance_weighted_triplets(distance, torch.arange(20) // 2, 2048)
    assert len(triplets) == 20


def test_wrong_arguments_of_the_samplers_are_refused(distance):
    with pytest.raises(ValueError, match="distance has shape"):
        hardest_triplets(distance[:5], LABELS)
    with pytest.raises(ValueError, match="labels has shape"):
        hardest_triplets(distance, LABELS[:5])
    with pytest.raises(ValueError, match="nonzero_loss_cutoff"):
        distance_weighted_triplets(distance, LABELS, 8, cutoff=1.5)
