"""Embeddings of stripes: one layer for each part of a map."""

import pytest
import torch
from torch import nn

from lookalike.models.embedder import Embedder, average_pool, gem_pool, max_layer_norm_pool, pool, stripe_pool

TINY = {"name": "tiny", "weights": None, "batch_norm": "trained"}
IMAGES = torch.randn(4, 3, 96, 32, generator=torch.Generator().manual_seed(0))


def striped(parts: int, dim: int = 12, **options) -> Embedder:
    torch.manual_seed(0)
    return Embedder(TINY, pooling="stripes", dim=dim, parts=parts, **options)


def test_one_stripe_is_an_average_a_linear_layer_a_batch_norm_and_a_relu():
    model = striped(1)
    linear, norm, _ = model.head.parts[0]
    pooled = average_pool(model.trunk(IMAGES)[-1])
    raw = pooled @ linear.weight.T
    expected = ((raw - raw.mean(0)) / (raw.var(0, unbiased=False) + norm.eps).sqrt()).clamp_min(0)
    torch.testing.assert_close(model(IMAGES), expected, rtol=1e-4, atol=1e-5)


def test_each_part_of_the_embedding_is_the_layer_of_its_stripe():
    model = striped(3).eval()
    for number, part in enumerate(model.head.parts):
        part[1].running_mean.fill_(0.01 * number)
        part[1].bias.data.fill_(0.1)
    with torch.no_grad():
        feature_map, embeddings = model.trunk(IMAGES)[-1], model(IMAGES)  # (4, 96, 12, 4), (4, 12)
        for number in range(3):
            rows = feature_map[:, :, 4 * number : 4 * number + 4]
            linear, norm, _ = model.head.parts[number]
            raw = rows.flatten(2).mean(2) @ linear.weight.T
            expected = ((raw - 0.01 * number) / (1 + norm.eps) ** 0.5 + 0.1).clamp_min(0)
            torch.testing.assert_close(embeddings[:, 4 * number : 4 * number + 4], expected, rtol=1e-4, atol=1e-6)
    assert model.dim == 12
    assert len({id(part[0].weight) for part in model.head.parts}) == 3  # unshared


def test_other_poolings_keep_the_names_of_their_parameters():
    model = Embedder(TINY, pooling="average", dim=5)
    assert {name for name in model.state_dict() if not name.startswith("trunk.")} == {"head.weight", "head.bias"}


def test_kaiming_reaches_the_layers_of_all_stripes():
    model = striped(2, dim=800, initialisation="kaiming")
    layers = [module for module in model.head.modules() if isinstance(module, nn.Linear)]
    assert len(layers) == 2
    for layer in layers:
        assert layer.weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "stripes", "dim": 12}, "parts=None with pooling 'stripes': 'stripes' needs a number"),
        ({"pooling": "average", "dim": 12, "parts": 3}, "parts=3 with pooling 'average'"),
        ({"pooling": "stripes", "dim": None, "parts": 3}, "needs a dim, a multiple of parts=3, not None"),
        ({"pooling": "stripes", "dim": 13, "parts": 3}, "dim=13 must be a multiple of parts=3"),
        ({"pooling": "stripes", "dim": 12, "parts": 0}, "parts=0, which must be at least 1"),
    ],
)
def test_stripes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Embedder(TINY, **options)


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
