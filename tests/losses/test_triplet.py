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
    TwoHingeQuadrupletLoss,
)
from lookalike.sampling.miners import DistanceWeightedMiner, RandomMiner, SemihardMiner, SofthardMiner


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


def mean(terms) -> float:
    return sum(terms) / len(terms)


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


LABELS = torch.tensor([0, 0, 1, 2])  # the third class of (0, 1, 2) is that of 3 only, of (0, 1, 3) that of 2 only
TRIPLETS = torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]), torch.tensor([2, 3, 2])
OTHER_NEGATIVE = {2: 3, 3: 2}


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_two_hinges_compare_one_positive_with_negatives_of_two_classes(seed):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.rand(4, 3, dtype=torch.float64, generator=generator).requires_grad_()  # no angle above 90
    unit = torch.nn.functional.normalize(embeddings.detach(), dim=1)
    hinges = [
        (
            max(0.0, euclidean(unit[a], unit[p]) - euclidean(unit[a], unit[n]) + 0.7),
            max(0.0, euclidean(unit[a], unit[p]) - euclidean(unit[a], unit[OTHER_NEGATIVE[n]]) + 0.7),
        )
        for a, p, n in rows(TRIPLETS)
    ]
    expected = mean([first for first, _ in hinges if first > 0]) + mean([second for _, second in hinges if second > 0])
    loss = TwoHingeQuadrupletLoss(margin=0.7)
    assert loss(embeddings, LABELS, TRIPLETS).item() == pytest.approx(expected, abs=1e-12)
    assert gradcheck(lambda e: loss(e, LABELS, TRIPLETS), embeddings, atol=1e-6)


def test_two_hinges_of_classes_far_apart_are_zero_with_a_gradient():
    embeddings = (torch.eye(3) + 0.1)[[0, 0, 1, 2]].requires_grad_()
    loss = TwoHingeQuadrupletLoss()(embeddings, LABELS, TRIPLETS)
    loss.backward()
    assert loss == 0
    assert embeddings.grad.abs().max() == 0


def test_two_hinges_of_two_classes_are_one():
    labels = torch.tensor([0, 0, 1, 1])
    embeddings = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    triplets = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([2, 1])
    terms = [max(0.0, euclidean(unit[a], unit[p]) - euclidean(unit[a], unit[n]) + 1) for a, p, n in rows(triplets)]
    loss = TwoHingeQuadrupletLoss(margin=1.0)(embeddings, labels, triplets)
    assert loss.item() == pytest.approx(mean([term for term in terms if term > 0]), abs=1e-12)


def test_the_other_negative_is_drawn_by_distance_and_never_from_beyond_the_reach():
    """Of candidates at distances 0.5, 1.2 and 1.5 the first is heavier by (1.2 / 0.5) ** 62, the last is not drawn."""

    def at(distance, axis):
        cosine = 1 - distance**2 / 2
        return cosine * torch.eye(64)[0] + (1 - cosine**2) ** 0.5 * torch.eye(64)[axis]

    embeddings = torch.stack([at(0, 1), at(0.4, 2), at(0.8, 3), at(0.5, 4), at(1.2, 5), at(1.5, 6)]).double()
    labels = torch.tensor([0, 0, 1, 2, 3, 4])
    triplets = torch.tensor([0]), torch.tensor([1]), torch.tensor([2])

    def value(kept):
        loss = TwoHingeQuadrupletLoss(margin=2.0, generator=torch.Generator().manual_seed(1))
        return loss(embeddings[kept], labels[kept], triplets).item()

    assert value([0, 1, 2, 3, 4, 5]) == pytest.approx((0.4 - 0.8 + 2) + (0.4 - 0.5 + 2), abs=1e-6)
    assert value([0, 1, 2, 4, 5]) == pytest.approx((0.4 - 0.8 + 2) + (0.4 - 1.2 + 2), abs=1e-6)
    assert value([0, 1, 2, 5]) == pytest.approx(0.4 - 0.8 + 2, abs=1e-6)


def test_two_hinges_mine_like_the_triplet_loss_unless_told_otherwise():
    assert (TwoHingeQuadrupletLoss().miner.upper, TwoHingeQuadrupletLoss().miner.triplets_per_anchor) == (1.4, 4)
    assert TwoHingeQuadrupletLoss(miner_parameters={}).miner.upper is None
    assert TwoHingeQuadrupletLoss(miner="semihard").miner.triplets_per_anchor == 1
