import pytest
import torch

from lookalike.models.pooling import average_pool, gem_pool, max_layer_norm_pool, pool, stripe_pool


def feature_map(seed: int = 0) -> torch.Tensor:
    return torch.randn(2, 6, 3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_gem_agrees_with_loops():
    maps = feature_map()
    pooled = gem_pool(maps)
    for b in range(2):
        for c in range(6):
            cubes = [max(value, 1e-6) ** 3 for value in maps[b, c].flatten().tolist()]
            assert pooled[b, c].item() == pytest.approx((sum(cubes) / 12) ** (1 / 3), rel=1e-12)


def test_gem_lies_between_mean_and_maximum():
    maps = feature_map().abs()
    torch.testing.assert_close(gem_pool(maps, power=1.0), average_pool(maps))
    torch.testing.assert_close(gem_pool(maps, power=300.0), maps.amax(dim=(2, 3)), rtol=1e-2, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_gem_of_dead_channels_has_a_finite_gradient(dtype):
    maps = torch.zeros(1, 2, 3, 3, dtype=dtype).requires_grad_()
    pooled = gem_pool(maps)
    pooled.sum().backward()
    assert pooled.dtype == torch.float32
    torch.testing.assert_close(pooled, torch.full((1, 2), 1e-6))
    assert maps.grad.isfinite().all()


def test_maxima_are_brought_to_mean_0_and_variance_1():
    maps = feature_map()
    pooled = max_layer_norm_pool(maps)
    maxima = maps.flatten(2).max(dim=2).values
    for b in range(2):
        centred = maxima[b] - maxima[b].mean()
        expected = centred / (centred.square().mean() + 1e-5).sqrt()
        torch.testing.assert_close(pooled[b], expected, rtol=0, atol=1e-12)


def test_poolings_agree_with_their_names():
    random = torch.Generator().manual_seed(0)
    feature_map = torch.rand(2, 5, 3, 4, generator=random, dtype=torch.float64)
    average = torch.stack([torch.stack([channel.sum() / 12 for channel in image]) for image in feature_map])
    largest = torch.stack([torch.stack([max(channel.flatten()) for channel in image]) for image in feature_map])
    assert torch.allclose(pool(feature_map, "average"), average, atol=1e-12)
    assert torch.equal(pool(feature_map, "max"), largest)
    assert torch.allclose(pool(feature_map, "average_max"), average + largest, atol=1e-12)
    with pytest.raises(ValueError, match="pooling: unknown 'median'"):
        pool(feature_map, "median")


def test_stripes_are_means_of_equal_parts_from_top_to_bottom():
    maps = torch.randn(2, 5, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    stripes = stripe_pool(maps, 3)
    assert stripes.shape == (2, 3, 5)
    for image in range(2):
        for part in range(3):
            for channel in range(5):
                values = maps[image, channel, 2 * part : 2 * part + 2].flatten().tolist()
                assert stripes[image, part, channel].item() == pytest.approx(sum(values) / 8, rel=1e-12, abs=1e-14)
    torch.testing.assert_close(stripe_pool(maps, 1)[:, 0], average_pool(maps), rtol=1e-12, atol=1e-14)


def test_stripes_that_do_not_divide_the_rows_share_the_row_between_them():
    maps = torch.arange(3.0).view(1, 1, 3, 1)
    assert stripe_pool(maps, 2).flatten().tolist() == [0.5, 1.5]


@pytest.mark.parametrize("parts", [0, 4])
def test_more_stripes_than_rows_are_refused(parts):
    with pytest.raises(ValueError, match=rf"parts={parts} is outside \[1, 3\], the rows of the map"):
        stripe_pool(feature_map(), parts)
