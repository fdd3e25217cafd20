from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lookalike.methods.sam.attention import attention_maps
from lookalike.methods.sam.head import LinearHead, PoolingHead, trunk_and_head, unit
from lookalike.models.embedder import Embedder

TINY = {"name": "tiny", "weights": None, "batch_norm": "trained"}


def test_unit_has_length_one_and_the_derivatives_of_the_library(draw):
    vectors = draw(4, 3, seed=0).requires_grad_()
    torch.testing.assert_close(unit(vectors), F.normalize(vectors, dim=-1), rtol=1e-14, atol=0)
    assert torch.autograd.gradcheck(unit, vectors)
    assert torch.autograd.gradgradcheck(unit, vectors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unit_of_zeros_is_zero_with_zero_derivatives_of_both_orders(dtype):
    vectors = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(unit(vectors).sum(), vectors, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum() + gradient.sum(), vectors)
    for value in (unit(vectors), gradient, second):
        assert torch.equal(value, torch.zeros_like(value))


def test_linear_head_is_the_mean_a_layer_and_a_normalisation(network, draw):
    _, head = network()
    maps = draw(4, 6, 5, 3, seed=1)
    raw = torch.stack([head.weight @ torch.stack([k.sum() / 15 for k in image]) + head.bias for image in maps])
    torch.testing.assert_close(head.project(maps), raw, rtol=1e-13, atol=0)
    torch.testing.assert_close(head(maps), raw / raw.norm(dim=1, keepdim=True), rtol=1e-13, atol=0)
    assert LinearHead(nn.Linear(6, 5, bias=False)).bias is None


def test_linear_head_leaves_autocast_and_promotes_half_precision(draw):
    head = LinearHead(nn.Linear(6, 5))
    maps = draw(4, 6, 3, 3, seed=2, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = head(maps)
    assert features.dtype == torch.float32
    torch.testing.assert_close(features, head(maps.float()), rtol=0, atol=0)
    assert head.bfloat16()(maps).dtype == torch.float32


@pytest.mark.parametrize(
    ("pooling", "dim", "kind"),
    [("average", 8, LinearHead), ("average_max", 8, PoolingHead), ("average", None, PoolingHead)],
)
def test_an_embedder_splits_into_parts_that_share_its_parameters(pooling, dim, kind, draw):
    embedder = Embedder(TINY, pooling=pooling, dim=dim).eval()
    trunk, head = trunk_and_head(embedder)
    assert isinstance(head, kind)
    images = draw(3, 3, 24, 24, seed=4, dtype=torch.float32)
    torch.testing.assert_close(head(trunk(images)), F.normalize(embedder(images), dim=1), rtol=0, atol=1e-6)
    own = {id(parameter) for parameter in embedder.parameters()}
    assert own == {id(parameter) for part in (trunk, head) for parameter in part.parameters()}
    assert attention_maps(trunk(images)[:, None], head, "triplet").shape == (3, 1, 3, 3)
