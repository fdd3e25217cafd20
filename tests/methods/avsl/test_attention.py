"""Maps and statistics against loops written from the method's description."""

import math

import pytest
import torch

from lookalike.methods.avsl.attention import (
    class_activation_maps,
    contribution_maps,
    linearise,
    node_statistics,
    normalised_maps,
)
from lookalike.methods.avsl.head import average_max_pool


def looped_linearise(z, ties):
    added = torch.zeros_like(z)
    images, channels, height, width = z.shape
    for n in range(images):
        for c in range(channels):
            places = [(h, w) for h in range(height) for w in range(width)]
            peak = max(float(z[n, c, h, w]) for h, w in places)
            best = [(h, w) for h, w in places if float(z[n, c, h, w]) == peak]
            if ties == "first":
                best = best[:1]
            for h, w in best:
                added[n, c, h, w] = height * width / len(best) * peak
    return added


def looped_maps(z, weight, bias, ties):
    linear = z + looped_linearise(z, ties)
    images, channels, height, width = z.shape
    maps = torch.zeros(images, len(weight), height, width, dtype=z.dtype)
    for n in range(images):
        for i in range(len(weight)):
            for h in range(height):
                for w in range(width):
                    total = float(bias[i])
                    for c in range(channels):
                        total += float(weight[i, c]) * float(linear[n, c, h, w])
                    maps[n, i, h, w] = total
    return maps


def looped_statistic(plane, min_over):
    """Standard deviation of one normalised map, given as a list of rows."""
    lowest = min(min(row) for row in plane)
    shifted = [value - (min(row) if min_over == "row" else lowest) for row in plane for value in row]
    norm = max(sum(abs(value) for value in shifted), 1e-12)
    shares = [value / norm for value in shifted]
    mean = sum(shares) / len(shares)
    return math.sqrt(sum((share - mean) ** 2 for share in shares) / (len(shares) - 1))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(3)


@pytest.fixture
def z(generator):
    z = torch.randn(2, 4, 3, 5, generator=generator, dtype=torch.float64).relu()
    z[0, 1] = 0  # an all-zero channel
    z[1, 2] = z[1, 2].clamp(max=0.2)  # several equal maxima
    return z


@pytest.fixture
def weight(generator):
    return torch.randn(6, 4, generator=generator, dtype=torch.float64)


@pytest.fixture
def bias(generator):
    return torch.randn(6, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("ties", ["first", "shared"])
def test_linearise_puts_the_weight_on_the_maximum(z, ties):
    assert (z[1, 2] == z[1, 2].max()).sum() > 1
    torch.testing.assert_close(linearise(z, ties), looped_linearise(z, ties), atol=1e-12, rtol=0)


@pytest.mark.parametrize("ties", ["first", "shared"])
def test_linearised_map_has_maximum_plus_mean_as_its_mean(z, ties):
    mean = (z + linearise(z, ties)).mean((2, 3))
    torch.testing.assert_close(mean, z.amax((2, 3)) + z.mean((2, 3)), atol=1e-12, rtol=0)


def test_linearise_takes_the_first_of_equal_maxima_in_row_major_order():
    added = linearise(torch.ones(1, 1, 2, 3))
    assert added.flatten().tolist() == [6, 0, 0, 0, 0, 0]


def test_linearise_of_an_all_zero_channel_is_zero(z):
    for ties in ("first", "shared"):
        assert not linearise(z, ties)[0, 1].any()


@pytest.mark.parametrize("ties", ["first", "shared"])
def test_class_activation_maps_equal_the_loops(z, weight, bias, ties, device):
    maps = class_activation_maps(z.to(device), weight.to(device), bias.to(device), ties).cpu()
    torch.testing.assert_close(maps, looped_maps(z, weight, bias, ties), atol=1e-9, rtol=0)


def test_mean_of_the_class_activation_map_is_the_embedding(z, weight, bias):
    embedding = average_max_pool(z) @ weight.T + bias
    torch.testing.assert_close(class_activation_maps(z, weight, bias).mean((2, 3)), embedding, atol=1e-13, rtol=0)


@pytest.mark.parametrize("min_over", ["row", "map"])
def test_node_statistics_equal_the_loops(generator, min_over, device):
    cams = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    expected = torch.tensor(
        [[looped_statistic(plane.tolist(), min_over) for plane in image] for image in cams], dtype=torch.float64
    )
    torch.testing.assert_close(node_statistics(cams.to(device), min_over).cpu(), expected, atol=1e-12, rtol=0)


def test_row_and_map_minimum_differ(generator):
    cams = torch.randn(1, 3, 4, 5, generator=generator)
    assert (node_statistics(cams, "row") - node_statistics(cams, "map")).abs().min() > 1e-3


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 1, 4, 1), (1, 1, 1, 4), (2, 3, 7, 7)])
@pytest.mark.parametrize("min_over", ["row", "map"])
def test_constant_map_has_no_spread(shape, min_over):
    assert node_statistics(torch.full(shape, -2.3), min_over).tolist() == torch.zeros(shape[:2]).tolist()


def test_node_statistics_ignore_offset_and_positive_scale(generator):
    cams = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(node_statistics(7 * cams + 2), node_statistics(cams), atol=1e-12, rtol=0)


def test_normalised_maps_sum_to_one(generator):
    maps = normalised_maps(torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64))
    assert maps.min() >= 0
    torch.testing.assert_close(maps.sum((2, 3)), torch.ones(2, 3, dtype=torch.float64), atol=1e-12, rtol=0)


def test_maps_and_statistics_in_float32_stay_near_float64(z, weight, bias):
    exact = class_activation_maps(z, weight, bias)
    rounded = class_activation_maps(z.float(), weight.float(), bias.float())
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.double(), exact, atol=2e-5, rtol=0)
    torch.testing.assert_close(node_statistics(rounded).double(), node_statistics(exact), atol=1e-6, rtol=0)


def test_contribution_maps_keep_the_contributions_as_their_sum(generator):
    cams = [torch.randn(2, 3, side, side, generator=generator, dtype=torch.float64) for side in (8, 4, 2)]
    contributions = [torch.rand(2, 5, 3, generator=generator, dtype=torch.float64) for _ in cams]
    maps = contribution_maps(contributions, cams, (8, 8))
    assert maps.shape == (2, 5, 8, 8)
    assert maps.min() >= 0
    expected = sum(level.sum(-1) for level in contributions)
    torch.testing.assert_close(maps.sum((2, 3)), expected, atol=1e-12, rtol=0)


def test_contribution_map_stands_where_its_node_looks():
    cam = torch.zeros(1, 2, 4, 4)
    cam[0, 0, 0, 0] = 1
    cam[0, 1, 3, 2] = 1
    maps = contribution_maps([torch.tensor([[[0.25, 0.75]]])], [cam], (4, 4))
    assert maps[0, 0, 0, 0] == 0.25
    assert maps[0, 0, 3, 2] == 0.75
    assert maps.sum() == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linearise(torch.zeros(2, 3, 4)), "z has shape"),
        (lambda: linearise(torch.zeros(2, 3, 0, 4)), "H, W >= 1"),
        (lambda: linearise(torch.zeros(1, 1, 1, 1), "last"), "ties: unknown 'last'"),
        (lambda: class_activation_maps(torch.zeros(1, 3, 2, 2), torch.zeros(5, 4), torch.zeros(5)), "weight"),
        (lambda: class_activation_maps(torch.zeros(1, 3, 2, 2), torch.zeros(5, 3), torch.zeros(4)), "bias"),
        (lambda: node_statistics(torch.zeros(1, 3, 2, 2), "image"), "min_over: unknown 'image'"),
        (lambda: contribution_maps([torch.zeros(1, 1, 2)], [], (2, 2)), "levels"),
        (lambda: contribution_maps([torch.zeros(1, 1, 2)], [torch.zeros(1, 3, 2, 2)], (2, 2)), "do not fit"),
    ],
)
def test_wrong_maps_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
