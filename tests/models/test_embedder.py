"""Embeddings of stripes: one layer for each part of a map."""

import pytest
import torch
from torch import nn

from lookalike.models.embedder import Embedder
from lookalike.models.pooling import average_pool

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
