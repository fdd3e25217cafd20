"""Concentric circles, learnt from the neighbour mask alone."""

import pytest
import torch

from figure_checks import so
from lookalike.figures.contextual.rings import checks, concentric, data, neighbour_accuracy, squared_distance

OPTIONS = {
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
    frame = data([], OPTIONS)
    assert len(frame) == 2 * (5 * 20 + 1)  # all points of the first of two draws
    clean, noisy = (frame[frame["noise"] == level]["accuracy"].iloc[0] for level in OPTIONS["noise"])
    assert clean > frame["accuracy_untrained"].iloc[0]
    assert clean > noisy
    assert so(checks(frame)[0])
    assert len(checks(frame)[0].cases[0][0]) == 2
    assert frame.equals(data([], OPTIONS))


def test_an_accuracy_not_above_the_untrained_one_is_no_holding_claim():
    frame = data([], {**OPTIONS, "noise": [0.0], "steps": 0})
    assert frame["accuracy"].equals(frame["accuracy_untrained"].rename("accuracy"))
    assert not so(checks(frame)[0])
