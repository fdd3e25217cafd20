from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning.distances import SNRDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer
from torch.autograd import gradcheck

from lookalike.losses.triplet import (
    DistanceWeightedTripletLoss,
    QuadrupletLoss,
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


def test_quadruplet_loss_adds_the_distance_of_the_negative_to_a_third_class():
    labels = torch.tensor([0, 0, 1, 2])  # so that the fourth of (0, 1, 2) can only be 3, and of (0, 1, 3) only 2
    embeddings = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4)).requires_grad_()
    triplets = torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]), torch.tensor([2, 3, 2])
    unit = torch.nn.functional.normalize(embeddings.detach(), dim=1)
    fourth = {2: 3, 3: 2}
    terms = [
        max(0.0, euclidean(unit[a], unit[p]) - euclidean(unit[a], unit[n]) + 0.7)
        + max(0.0, euclidean(unit[a], unit[p]) - euclidean(unit[n], unit[fourth[n]]) + 0.9)
        for a, p, n in rows(triplets)
    ]
    loss = QuadrupletLoss(margin=0.7, fourth_margin=0.9)
    assert loss(embeddings, labels, triplets).item() == pytest.approx(sum(terms) / len(terms), abs=1e-12)
    assert gradcheck(lambda e: loss(e, labels, triplets), embeddings, atol=1e-6)


def test_the_fourth_item_is_of_a_third_class_and_may_be_any_of_it(monkeypatch):
    labels = torch.arange(4).repeat_interleave(3)
    embeddings = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    loss = QuadrupletLoss(miner="all", generator=torch.Generator().manual_seed(0))
    seen = []

    def spy(log_weights, generator):
        drawn = original(log_weights, generator)
        seen.append(drawn)
        return drawn

    from lookalike.losses import triplet

    original = triplet.draw_columns
    monkeypatch.setattr(triplet, "draw_columns", spy)
    loss(embeddings, labels)
    anchor, _, negative = loss.miner(embeddings, labels)
    (fourth,) = seen
    assert len(fourth) == len(anchor)
    assert (labels[fourth] != labels[anchor]).all()
    assert (labels[fourth] != labels[negative]).all()
    assert set(fourth.tolist()) == set(range(12))


def test_quadruplet_loss_of_two_classes_is_its_first_term():
    labels = torch.tensor([0, 0, 1, 1])
    embeddings = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    triplets = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([2, 1])
    terms = [max(0.0, euclidean(unit[a], unit[p]) - euclidean(unit[a], unit[n]) + 1) for a, p, n in rows(triplets)]
    assert sum(terms) > 0
    assert QuadrupletLoss(margin=1.0)(embeddings, labels, triplets).item() == pytest.approx(sum(terms) / 2, abs=1e-12)


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
