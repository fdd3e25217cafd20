from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning.distances import SNRDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer
from torch.autograd import gradcheck

from lookalike.losses.triplet import (
    DistanceWeightedTripletLoss,
    RandomTripletLoss,
    SemihardTripletLoss,
    SNRLoss,
    SofthardTripletLoss,
    TripletLoss,
)
from lookalike.miners import DistanceWeightedMiner, RandomMiner, SemihardMiner, SofthardMiner


def rows(triplets):
    return list(zip(*[part.tolist() for part in triplets], strict=True))


def euclidean(first, second) -> float:
    return (first - second).square().sum().sqrt().item()


def test_triplet_loss_averages_the_violations_of_plain_distances(embeddings, labels, unit, triplets):
    terms = [euclidean(unit[a], unit[p]) - euclidean(unit[a], unit[n]) + 0.05 for a, p, n in rows(triplets)]
    violations = [term for term in terms if term > 0]
    assert 0 < len(violations) < len(terms)
    expected = sum(violations) / len(violations)
    assert TripletLoss()(embeddings, labels, triplets).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "miner"),
    [
        (RandomTripletLoss, RandomMiner),
        (SemihardTripletLoss, SemihardMiner),
        (SofthardTripletLoss, SofthardMiner),
        (DistanceWeightedTripletLoss, DistanceWeightedMiner),
    ],
)
def test_triplet_losses_of_diml_average_squared_distances_over_all_triplets(
    loss, miner, embeddings, labels, unit, triplets
):
    squared = lambda i, j: euclidean(unit[i], unit[j]) ** 2  # noqa: E731
    terms = [max(0.0, squared(a, p) - squared(a, n) + 0.2) for a, p, n in rows(triplets)]
    assert 0 in terms
    assert loss()(embeddings, labels, triplets).item() == pytest.approx(sum(terms) / len(terms), abs=1e-12)
    assert isinstance(loss().miner, miner)


def test_snr_loss_equals_the_library_where_variances_exist(embeddings, labels, triplets):
    library = TripletMarginLoss(0.2, distance=SNRDistance(), reducer=AvgNonZeroReducer())
    expected = library(embeddings, labels, triplets)
    torch.testing.assert_close(SNRLoss()(embeddings, labels, triplets), expected, rtol=0, atol=1e-12)


def test_snr_loss_by_hand(embeddings, labels, unit, triplets):
    def variance(vector):
        mean = sum(vector.tolist()) / len(vector)
        return sum((value - mean) ** 2 for value in vector.tolist()) / (len(vector) - 1)

    terms = [
        (variance(unit[a] - unit[p]) - variance(unit[a] - unit[n])) / variance(unit[a]) + 0.2
        for a, p, n in rows(triplets)
    ]
    violations = [term for term in terms if term > 0]
    assert 0 < len(violations) < len(terms)
    expected = sum(violations) / len(violations)
    assert SNRLoss()(embeddings, labels, triplets).item() == pytest.approx(expected, abs=1e-12)
    assert gradcheck(lambda e: SNRLoss()(e, labels, triplets), embeddings.requires_grad_(), atol=1e-6)
