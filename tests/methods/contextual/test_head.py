from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lookalike.methods.contextual.head import (
    EmbeddingHead,
    Projector,
    average_pool,
    gem_pool,
    max_layer_norm_pool,
)


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


@pytest.mark.parametrize("pooling", ["gem", "max_layer_norm", "average"])
@pytest.mark.parametrize("initialisation", ["kaiming", "default"])
def test_embeddings_are_unit_vectors_of_the_pooled_linear_layer(pooling, initialisation):
    head = EmbeddingHead(6, 5, pooling=pooling, initialisation=initialisation).double()
    embeddings = head(feature_map())
    assert embeddings.shape == (2, 5)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(2, dtype=torch.float64))
    pooled = {"gem": gem_pool, "max_layer_norm": max_layer_norm_pool, "average": average_pool}[pooling](feature_map())
    linear = pooled @ head.linear.weight.T + head.linear.bias
    torch.testing.assert_close(embeddings, linear / linear.norm(dim=1, keepdim=True))


def test_initialisations_follow_the_two_set_ups():
    generator = torch.Generator().manual_seed(0)
    kaiming = EmbeddingHead(256, 400, pooling="gem", initialisation="kaiming", generator=generator)
    assert kaiming.linear.weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert kaiming.linear.bias.abs().max() == 0
    default = EmbeddingHead(256, 400, pooling="average", initialisation="default", generator=generator)
    for parameter in default.parameters():
        assert parameter.abs().max() <= 1 / 16
        assert parameter.std().item() == pytest.approx(1 / 16 / 3**0.5, rel=0.1)


def test_a_generator_fixes_the_weights_and_leaves_torch_alone():
    state = torch.get_rng_state()
    heads = [
        EmbeddingHead(8, 4, pooling="gem", initialisation="default", generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    ]
    projectors = [Projector(4, 9, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(heads[0].linear.weight, heads[1].linear.weight)
    assert torch.equal(projectors[0].linear.weight, projectors[1].linear.weight)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_projector_works_while_training_and_is_dropped_at_test():
    embeddings = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    projector = Projector(4, 9)
    assert projector.linear.bias is None
    projected = projector(embeddings)
    linear = F.normalize(embeddings, dim=1) @ projector.linear.weight.T
    torch.testing.assert_close(projected, linear / linear.norm(dim=1, keepdim=True))
    torch.testing.assert_close(projector.eval()(embeddings), F.normalize(embeddings, dim=1))


def test_the_projector_leaves_autocast():
    projector = Projector(4, 9)
    embeddings = F.normalize(torch.randn(3, 4, generator=torch.Generator().manual_seed(2)), dim=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        projected = projector(embeddings)
    assert projected.dtype == torch.float32
    assert torch.equal(projected, projector(embeddings))


def test_unknown_choices_are_rejected_with_the_known_ones():
    with pytest.raises(ValueError, match="'median' is unknown, known are gem, max_layer_norm, average"):
        EmbeddingHead(6, 5, pooling="median", initialisation="default")
    with pytest.raises(ValueError, match="'zeros' is unknown, known are kaiming, default"):
        EmbeddingHead(6, 5, pooling="gem", initialisation="zeros")
