from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lookalike.methods.sam.attention import attention_maps, similarity_weight
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.loss import similarity_mining
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.embedder import Embedder

OPTIONS = [{}, {"reading": "full", "score": "abs", "score_on": "raw", "clamp": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_maps_are_those_of_the_function_at_the_size_of_the_feature_maps(options, network, draw):
    trunk, head = network()
    model = SimilarityAttention(trunk, head, **options)
    images = draw(3, 2, 3, 8, 6, seed=0)
    maps = model.maps(images, "triplet")
    assert maps.shape == (3, 2, 4, 3)
    assert not maps.requires_grad
    feature_maps = trunk(images.flatten(0, 1)).view(3, 2, 6, 4, 3)
    torch.testing.assert_close(maps, attention_maps(feature_maps, head, "triplet", **options), rtol=1e-13, atol=0)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_maps_and_explanations_come_out_where_gradients_are_off(context, network, draw):
    model = SimilarityAttention(*network(), "full")
    images = draw(2, 2, 3, 8, 6, seed=1)
    expected = model.maps(images, "siamese_same")
    assert expected.max() > 0
    with context():
        assert torch.equal(model.maps(images, "siamese_same"), expected)
        assert model.explain(images)["siamese_same"].maps.max() > 0.99


def test_mining_loss_passes_all_settings_on(network, draw):
    trunk, head = network()
    images = draw(4, 2, 3, 8, 6, seed=2)
    options = {
        "reading": "full",
        "score": "abs",
        "score_on": "raw",
        "clamp": True,
        "alpha": 7.0,
        "beta": 0.4,
        "normalise": "max",
        "detach_mask": True,
        "masked_batch_norm": "batch",
    }
    model = SimilarityAttention(trunk, head, **options)
    value = model.mining_loss(images, "quadruplet", form="squared")
    expected = similarity_mining(trunk, head, images, "quadruplet", form="squared", **options)
    assert torch.equal(value, expected)
    default = SimilarityAttention(trunk, head).mining_loss(images, "quadruplet")
    assert torch.equal(default, similarity_mining(trunk, head, images, "quadruplet"))
    assert not torch.equal(default, value)


def test_a_pair_is_explained_by_what_is_alike_and_by_what_differs(network, draw, device):
    trunk, head = (part.to(device) for part in network())
    model = SimilarityAttention(trunk, head)
    images = draw(2, 3, 3, 8, 6, seed=3).to(device)
    explanations = model.explain(images)
    assert list(explanations) == ["siamese_same", "siamese_different"]
    features = head(trunk(images.flatten(0, 1))).view(2, 3, 5)
    for kind, explanation in explanations.items():
        assert explanation.maps.shape == (2, 3, 8, 6)
        assert explanation.maps.min() >= 0 and explanation.maps.max() <= 1
        torch.testing.assert_close(explanation.maps, heat_map(model.maps(images, kind), (8, 6)), rtol=1e-12, atol=0)
        torch.testing.assert_close(explanation.weight, similarity_weight(features, kind), rtol=1e-12, atol=0)
        torch.testing.assert_close(explanation.features, features, rtol=1e-12, atol=0)
    total = explanations["siamese_same"].weight + explanations["siamese_different"].weight
    torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-14, atol=0)
    assert not torch.allclose(explanations["siamese_same"].maps, explanations["siamese_different"].maps)


@pytest.mark.parametrize(("roles", "kind"), [(3, "triplet"), (4, "quadruplet")])
def test_more_roles_have_one_explanation(roles, kind, network, draw, device):
    model = SimilarityAttention(*network()).to(device)
    images = draw(roles, 2, 3, 8, 6, seed=4).to(device)
    explanations = model.explain(images)
    assert list(explanations) == [kind]
    assert explanations[kind].maps.shape == (roles, 2, 8, 6)


def test_model_embeds_and_explains_with_the_parts_of_an_embedder(draw):
    embedder = Embedder({"name": "tiny", "weights": None, "batch_norm": "trained"}, pooling="average", dim=8).eval()
    model = SimilarityAttention(*trunk_and_head(embedder)).eval()
    images = draw(4, 3, 24, 24, seed=5, dtype=torch.float32)
    torch.testing.assert_close(model(images), F.normalize(embedder(images), dim=1), rtol=0, atol=1e-6)
    explanations = model.explain(images.view(2, 2, 3, 24, 24))
    assert explanations["siamese_different"].maps.shape == (2, 2, 24, 24)


def test_wrong_tuples_and_unknown_options_are_refused(network, draw):
    trunk, head = network()
    with pytest.raises(ValueError, match="reading: unknown 'inner'"):
        SimilarityAttention(trunk, head, "inner")
    with pytest.raises(ValueError, match="alpha=0"):
        SimilarityAttention(trunk, head, alpha=0)
    model = SimilarityAttention(trunk, head)
    images = draw(5, 2, 3, 8, 6, seed=6)
    with pytest.raises(ValueError, match="with R = 2, 3 or 4 is needed"):
        model.explain(images)
    with pytest.raises(ValueError, match="with R = 2, 3 or 4 is needed"):
        model.explain(images[0])
    with pytest.raises(ValueError, match=r"triplet needs \(3, B, 3, H, W\)"):
        model.maps(images, "triplet")
    with pytest.raises(ValueError, match="kind: unknown 'pair'"):
        model.mining_loss(images, "pair")
    with pytest.raises(ValueError, match="form: unknown 'huber'"):
        model.mining_loss(images[:3], "triplet", form="huber")
