"""A model's images compared over its graph, and as one weighted vector each."""

import pytest
import torch

from lookalike.methods.avsl.scoring import ERROR, fixed_weights, graph, weighted_vectors
from lookalike.metrics.search import Search
from trainings import batch, learner


@pytest.fixture
def model():
    learning = learner("avsl")
    learning(*batch())  # from which its edges come
    return learning.model.eval()


def searched(model, seed=0):
    images, labels = batch(seed)
    with torch.no_grad():
        state = model(images).state()
    return state, Search(labels, labels, (1, 2), self_match=True)


def test_a_model_that_has_hardly_learned_ranks_by_fixed_weights_as_by_its_graph(model):
    state, search = searched(model)
    exact, fixed = graph(model, state, state, search), fixed_weights(model, state, state, search)
    assert 0 < fixed[ERROR] < 0.1  # slopes are 1 at the start, and statistics small
    assert fixed["R@1"] == exact["R@1"]
    assert fixed["mAP"] == pytest.approx(exact["mAP"], abs=0.01)


def test_squared_distances_of_the_vectors_are_the_weighted_nodes(model):
    images, _ = batch()
    with torch.no_grad():
        seen = model(images)
    weights = [torch.rand(8, generator=torch.Generator().manual_seed(level)) for level in range(3)]
    vectors = weighted_vectors(seen, weights)
    assert vectors.shape == (9, 24)
    explained = model.explain(seen, seen)
    expected = sum(
        (nodes.double() * weight).sum(dim=-1) for nodes, weight in zip(explained.nodes, weights, strict=True)
    )
    torch.testing.assert_close(torch.cdist(vectors, vectors).square(), expected, atol=1e-6, rtol=1e-5)


def test_a_steep_reliability_says_how_far_off_the_vectors_are(model):
    state, search = searched(model)
    gentle = fixed_weights(model, state, state, search)[ERROR]
    with torch.no_grad():
        model.alpha.fill_(300.0)
    assert fixed_weights(model, state, state, search)[ERROR] > 10 * gentle


@pytest.mark.parametrize("variant", ["top", "concat"])
def test_a_variant_without_reliability_is_refused(model, variant):
    state, search = searched(model)
    model.variant = variant
    with pytest.raises(ValueError, match=f"'{variant}' has no weights that depend on the pair; score it by 'graph'"):
        fixed_weights(model, state, state, search)
