"""The loss and the pull of a point that moves along the unit circle, against a loop and finite differences.

Concentric circles, learnt from the neighbour mask alone.
"""

import math

import pytest
import torch

from figure_checks import so
from lookalike.workflow.report.figures.contextual.toy_problems import (
    QUARTER,
    MovingPoint,
    Rings,
    check_moving_point,
    check_rings,
    concentric,
    loss_and_pull,
    moving_point_data,
    neighbour_accuracy,
    rings_data,
    squared_distance,
    two_classes,
)

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
    value, _ = loss_and_pull(
        "contrastive", angles, labels, torch.tensor(40.0, dtype=torch.float64), MovingPoint(**OPTIONS)
    )
    expected = contrastive_by_loop([40.0, *angles.tolist()], [1, *labels.tolist()])
    assert value == pytest.approx(expected, abs=1e-12)


def test_the_pull_is_minus_the_derivative_by_the_position():
    angles, labels = two_classes(12, 10.0, torch.Generator().manual_seed(0))
    step = 1e-5

    def value(position):
        at = torch.tensor(position, dtype=torch.float64)
        return loss_and_pull("contrastive", angles, labels, at, MovingPoint(**OPTIONS))

    difference = (value(40 + step)[0] - value(40 - step)[0]) / math.radians(2 * step)
    assert value(40.0)[1] == pytest.approx(-difference, rel=1e-4)


def test_the_moving_point_belongs_to_the_class_at_the_end_of_the_way():
    angles, labels = two_classes(64, 5.0, torch.Generator().manual_seed(1))
    assert (labels == 0).sum() == 32
    assert (labels == 1).sum() == 31
    assert angles[labels == 0].mean() == pytest.approx(0, abs=5)
    assert angles[labels == 1].mean() == pytest.approx(QUARTER, abs=5)


def test_every_draw_has_every_position_of_both_losses():
    frame = moving_point_data([], MovingPoint(**OPTIONS))
    assert len(frame) == 2 * 2 * 7
    assert sorted(frame["position"].unique()) == [0, 15, 30, 45, 60, 75, 90]
    assert frame.equals(moving_point_data([], MovingPoint(**OPTIONS)))


def test_a_pull_that_ends_before_the_minimum_is_no_holding_claim():
    frame = moving_point_data([], MovingPoint(**OPTIONS))
    assert check_moving_point(frame)[0].holds
    first = (frame["loss"] == "contextual") & (frame["draw"] == 1) & (frame["position"] == 0)
    frame.loc[first, "pull"] = 0.0
    assert not check_moving_point(frame)[0].holds


OPTIONS_RINGS = {
    "noise": [0.0, 2.0],
    "points": 20,
    "k": 4,
    "eps": 1e-5,
    "alpha": 10.0,
    "hidden": 32,
    "steps": 200,
    "lr": 3e-3,
    "neighbours": 3,
    "seed": 0,
    "draws": 2,
}


def test_points_lie_on_circles_of_radius_one_to_five():
    points, circles = concentric(7, torch.Generator().manual_seed(0))
    assert torch.allclose(points.norm(dim=1), circles + 1.0, atol=1e-5)
    assert circles.bincount().tolist() == [7] * 5


def test_squared_distances_are_those_of_a_loop():
    tensor = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, points = squared_distance(tensor).tolist(), tensor.tolist()
    for i in range(5):
        for j in range(5):
            assert found[i][j] == pytest.approx(sum((points[i][d] - points[j][d]) ** 2 for d in range(2)), abs=1e-12)


def test_accuracy_counts_the_majority_of_the_neighbours_without_the_point_itself():
    points = torch.tensor([[0.0, 0], [0.1, 0], [0.2, 0], [9.0, 0], [9.1, 0], [0.05, 0]])
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    # with one neighbour: only those at 9 and at 0.2 (nearest 0.1) have one of their class; with three: all of class 0
    assert neighbour_accuracy(points, labels, 1) == pytest.approx(3 / 6)
    assert neighbour_accuracy(points, labels, 3) == pytest.approx(3 / 6)


def test_training_raises_the_accuracy_and_much_noise_lowers_it():
    frame = rings_data([], Rings(**OPTIONS_RINGS))
    assert len(frame) == 2 * (5 * 20 + 1)  # all points of the first of two draws
    clean, noisy = (frame[frame["noise"] == level]["accuracy"].iloc[0] for level in OPTIONS_RINGS["noise"])
    assert clean > frame["accuracy_untrained"].iloc[0]
    assert clean > noisy
    assert so(check_rings(frame)[0])
    assert len(check_rings(frame)[0].cases[0][0]) == 2
    assert frame.equals(rings_data([], Rings(**OPTIONS_RINGS)))


def test_an_accuracy_not_above_the_untrained_one_is_no_holding_claim():
    frame = rings_data([], Rings(**{**OPTIONS_RINGS, "noise": [0.0], "steps": 0}))
    assert frame["accuracy"].equals(frame["accuracy_untrained"].rename("accuracy"))
    assert not so(check_rings(frame)[0])
