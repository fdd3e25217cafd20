"""Projection of a feature map, locations and global vectors.

Grids of locations against hand-made weights, loops and torchvision's definition.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lookalike.base.tensors import unit
from lookalike.methods.diml.head import grid_regions, mean_vector, project
from lookalike.methods.diml.representation import heat_maps
from lookalike.methods.diml.similarity import grid_pool

GENERATOR = torch.Generator().manual_seed(0)
MAPS = torch.randn(2, 5, 7, 7, generator=GENERATOR, dtype=torch.float64)
WEIGHT, BIAS = (torch.randn(*shape, generator=GENERATOR, dtype=torch.float64) for shape in ((3, 5), (3,)))


def test_projection_is_the_linear_layer_at_every_position():
    z = project(MAPS, WEIGHT, BIAS)
    for n in range(2):
        for y in range(7):
            for x in range(7):
                expected = WEIGHT @ MAPS[n, :, y, x] + BIAS
                torch.testing.assert_close(z[n, :, y, x], expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(project(MAPS, WEIGHT), z - BIAS[:, None, None], atol=1e-12, rtol=0)


@pytest.mark.parametrize("mode", ["resample", "roi_align", "adaptive"])
@pytest.mark.parametrize("side", [1, 2, 4, 7])
def test_projection_and_pooling_commute(side, mode):
    first = grid_pool(project(MAPS, WEIGHT, BIAS), side, mode)
    torch.testing.assert_close(first, project(grid_pool(MAPS, side, mode), WEIGHT, BIAS), atol=1e-12, rtol=0)


def test_locations_run_row_by_row():
    z = torch.arange(16.0).view(1, 1, 4, 4)
    assert grid_regions(z, 4).tolist() == [[[float(place)] for place in range(16)]]
    assert grid_regions(MAPS, 4).shape == (2, 16, 5)


def test_global_vector_is_the_unit_mean_before_locations_are_units():
    regions = grid_regions(MAPS, 4)
    expected = regions.sum(1) / 16
    expected = expected / expected.square().sum(1, keepdim=True).sqrt()
    torch.testing.assert_close(mean_vector(regions), expected, atol=1e-12, rtol=0)
    assert not torch.allclose(mean_vector(unit(regions)), expected, atol=1e-3)
    ordinary = unit(MAPS.mean((2, 3)))  # resampling weighs positions unevenly, so that it differs
    assert not torch.allclose(expected, ordinary, atol=1e-3)
    torch.testing.assert_close(mean_vector(grid_regions(MAPS, 7)), ordinary, atol=1e-12, rtol=0)


def test_zero_vectors_stay_zero():
    assert torch.equal(unit(torch.zeros(2, 3)), torch.zeros(2, 3))


@pytest.mark.parametrize("shape", [(5, 7, 7), (2, 4, 7, 7)])
def test_projection_refuses_maps_of_other_channels(shape):
    with pytest.raises(ValueError, match="feature_map"):
        project(torch.zeros(shape), WEIGHT.float())
    with pytest.raises(ValueError, match=r"bias has shape \(4,\)"):
        project(MAPS, WEIGHT, torch.zeros(4))


def test_heat_maps_keep_the_mass_and_place_of_the_marginal():
    marginal = torch.tensor([[0.5, 0.1, 0.1, 0.3], [0.25] * 4])
    maps = heat_maps(marginal, (8, 12))
    assert maps.shape == (2, 8, 12)
    torch.testing.assert_close(maps.sum((1, 2)), torch.ones(2), atol=1e-6, rtol=0)
    quarters = maps[0].view(2, 4, 2, 6).sum((1, 3)).flatten()
    assert quarters.argsort(descending=True)[:2].tolist() == [0, 3]
    torch.testing.assert_close(maps[1], torch.full((8, 12), 1 / 96), atol=1e-7, rtol=0)
    assert heat_maps(marginal[None], (4, 4)).shape == (1, 2, 4, 4)


def test_heat_maps_refuse_what_is_no_square_grid():
    with pytest.raises(ValueError, match="5 locations"):
        heat_maps(torch.ones(2, 5), (8, 8))
    with pytest.raises(ValueError, match="size"):
        heat_maps(torch.ones(2, 4), (0, 8))


# Notes on the released code: one row of weights per bin, for maps of 7 positions; the other half mirrors the first.
WEIGHTS = {
    4: [[0.45, 0.5, 0.05, 0, 0, 0, 0], [0, 0.1, 0.6, 0.3, 0, 0, 0]],
    2: [[2 / 7, 2 / 7, 2 / 7, 1 / 7, 0, 0, 0]],
}


def maps(height=7, width=7, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, channels, height, width, generator=generator, dtype=torch.float64)


def bilinear(image, y, x):
    """Value between pixel centres, coordinates cut at the border."""
    height, width = image.shape
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    top, left = min(int(y), height - 2) if height > 1 else 0, min(int(x), width - 2) if width > 1 else 0
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    upper = (1 - dx) * image[top, left] + dx * image[top, right]
    lower = (1 - dx) * image[bottom, left] + dx * image[bottom, right]
    return (1 - dy) * upper + dy * lower


def pool_by_loops(z, side, points):
    """Mean of 4 x 4 bilinear samples per bin; ``points(size)`` gives the 4 S coordinates along one side."""
    result = torch.zeros(*z.shape[:2], side, side, dtype=z.dtype)
    ys, xs = points(z.shape[2]), points(z.shape[3])
    for n in range(z.shape[0]):
        for c in range(z.shape[1]):
            for i in range(side):
                for j in range(side):
                    samples = [bilinear(z[n, c], ys[4 * i + a], xs[4 * j + b]) for a in range(4) for b in range(4)]
                    result[n, c, i, j] = sum(samples) / 16
    return result


@pytest.mark.parametrize("side", [2, 4])
def test_resampling_has_the_printed_weights(side):
    half = torch.tensor(WEIGHTS[side], dtype=torch.float64)
    weights = torch.cat([half, half.flip(0, 1)])
    expected = torch.einsum("gh,nchw,kw->ncgk", weights, maps(), weights)
    torch.testing.assert_close(grid_pool(maps(), side), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("side", "height", "width"), [(2, 7, 7), (3, 7, 5), (4, 7, 7), (4, 8, 6), (5, 3, 4)])
def test_resampling_agrees_with_loops(side, height, width):
    z = maps(height, width)
    expected = pool_by_loops(z, side, lambda size: [(size - 1) * k / (4 * side - 1) for k in range(4 * side)])
    torch.testing.assert_close(grid_pool(z, side), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("side", "height", "width"), [(1, 7, 7), (2, 7, 7), (4, 7, 7), (7, 7, 7), (3, 6, 5)])
def test_roi_align_agrees_with_loops(side, height, width):
    z = maps(height, width)

    def points(size):  # the box is the whole map; pixel centres lie at whole numbers, half a pixel inside
        return [size / side * (k + 0.5) / 4 - 0.5 for k in range(4 * side)]

    torch.testing.assert_close(grid_pool(z, side, "roi_align"), pool_by_loops(z, side, points), atol=1e-12, rtol=0)


def test_roi_align_and_resampling_differ_by_about_an_eighth():
    z = maps(channels=64)
    difference = (grid_pool(z, 4) - grid_pool(z, 4, "roi_align")).norm() / grid_pool(z, 4, "roi_align").norm()
    assert 0.05 < difference < 0.4  # white noise; smooth maps differ less


@pytest.mark.parametrize("mode", ["resample", "adaptive"])
def test_a_grid_that_divides_the_map_takes_plain_means(mode):
    z = maps(8, 4)
    expected = z.view(2, 3, 4, 2, 4, 1).mean((3, 5))
    torch.testing.assert_close(grid_pool(z, 4, mode), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(grid_pool(maps(), 7, mode), maps(), atol=0, rtol=0)
    torch.testing.assert_close(grid_pool(maps(), 1, mode)[..., 0, 0], maps().mean((2, 3)), atol=1e-12, rtol=0)


def test_adaptive_pooling_never_resamples():
    torch.testing.assert_close(grid_pool(maps(), 4, "adaptive"), F.adaptive_avg_pool2d(maps(), 4), atol=0, rtol=0)
    assert not torch.allclose(grid_pool(maps(), 4, "adaptive"), grid_pool(maps(), 4))


@pytest.mark.parametrize("mode", ["resample", "roi_align", "adaptive"])
@pytest.mark.parametrize("side", [1, 2, 4, 7])
def test_weights_of_a_bin_sum_to_one(mode, side):
    pooled = grid_pool(torch.full((1, 2, 7, 7), 3.0), side, mode)
    assert pooled.shape == (1, 2, side, side)
    torch.testing.assert_close(pooled, torch.full_like(pooled, 3.0), atol=1e-5, rtol=0)


@pytest.mark.parametrize("mode", ["resample", "roi_align", "adaptive"])
def test_dtype_and_gradients_pass_through(mode):
    z = maps().requires_grad_()
    assert grid_pool(z.float(), 4, mode).dtype == torch.float32
    assert torch.autograd.gradcheck(lambda x: grid_pool(x, 4, mode), (z[:1, :1].detach().requires_grad_(),))


def test_no_images_give_no_grids():
    assert grid_pool(torch.zeros(0, 3, 7, 7), 4, "roi_align").shape == (0, 3, 4, 4)
    assert grid_pool(torch.zeros(0, 3, 7, 7), 4).shape == (0, 3, 4, 4)


@pytest.mark.parametrize(
    ("shape", "side", "mode", "message"),
    [
        ((3, 7, 7), 4, "resample", r"\(3, 7, 7\)"),
        ((1, 3, 0, 7), 4, "resample", "H, W >= 1"),
        ((1, 3, 7, 7), 0, "resample", "side=0"),
        ((1, 3, 7, 7), 4, "nearest", "mode: unknown 'nearest'.*resample"),
    ],
)
def test_wrong_arguments_are_refused(shape, side, mode, message):
    with pytest.raises(ValueError, match=message):
        grid_pool(torch.zeros(shape), side, mode)
