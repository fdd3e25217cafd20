"""The loss and the pull of a point that moves along the unit circle, against a loop and finite differences."""

import math

import pytest
import torch

from lookalike.figures.contextual.moving_point import QUARTER, checks, data, loss_and_pull, two_classes

OPTIONS = {
    "points": 12,
    "spread_degrees": 10.0,
    "positions": 7,
    "draws": 2,
    "seed": 3,
    "k": 6,
    "eps": 0.05,
    "alpha": 10.0,
    "positive_margin": 0.75,
    "negative_margin": 0.6,
}


def contrastive_by_loop(degrees, labels):
    """Eq. 29: the mean violation of the pairs that violate, positives and negatives each."""
    violations = {True: [], False: []}
    for i, one in enumerate(degrees):
        for j, other in enumerate(degrees):
            similarity = math.cos(math.radians(one - other))
            same = labels[i] == labels[j]
            violation = 0.75 - similarity if same else similarity - 0.6
            if violation > 0:
                violations[same].append(violation)
    return sum(sum(each) / len(each) for each in violations.values() if each)


def test_the_contrastive_loss_of_a_position_is_that_of_all_points_with_the_moving_one():
    angles, labels = two_classes(12, 10.0, torch.Generator().manual_seed(0))
    value, _ = loss_and_pull("contrastive", angles, labels, torch.tensor(40.0, dtype=torch.float64), OPTIONS)
    expected = contrastive_by_loop([40.0, *angles.tolist()], [1, *labels.tolist()])
    assert value == pytest.approx(expected, abs=1e-12)


def test_the_pull_is_minus_the_derivative_by_the_position():
    angles, labels = two_classes(12, 10.0, torch.Generator().manual_seed(0))
    step = 1e-5

    def value(position):
        at = torch.tensor(position, dtype=torch.float64)
        return loss_and_pull("contrastive", angles, labels, at, OPTIONS)

    difference = (value(40 + step)[0] - value(40 - step)[0]) / math.radians(2 * step)
    assert value(40.0)[1] == pytest.approx(-difference, rel=1e-4)


def test_the_moving_point_belongs_to_the_class_at_the_end_of_the_way():
    angles, labels = two_classes(64, 5.0, torch.Generator().manual_seed(1))
    assert (labels == 0).sum() == 32
    assert (labels == 1).sum() == 31
    assert angles[labels == 0].mean() == pytest.approx(0, abs=5)
    assert angles[labels == 1].mean() == pytest.approx(QUARTER, abs=5)


def test_every_draw_has_every_position_of_both_losses():
    frame = data([], OPTIONS)
    assert len(frame) == 2 * 2 * 7
    assert sorted(frame["position"].unique()) == [0, 15, 30, 45, 60, 75, 90]
    assert frame.equals(data([], OPTIONS))


def test_a_pull_that_ends_before_the_minimum_is_no_holding_claim():
    frame = data([], OPTIONS)
    assert checks(frame)[0].holds
    first = (frame["loss"] == "contextual") & (frame["draw"] == 1) & (frame["position"] == 0)
    frame.loc[first, "pull"] = 0.0
    assert not checks(frame)[0].holds
