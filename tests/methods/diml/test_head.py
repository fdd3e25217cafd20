"""Projection of a feature map, locations and global vectors."""

from __future__ import annotations

import pytest
import torch

from lookalike.methods.diml.attention import heat_maps
from lookalike.methods.diml.head import grid_regions, mean_vector, project
from lookalike.methods.diml.similarity import grid_pool
from lookalike.tensors import unit

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
