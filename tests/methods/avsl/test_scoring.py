"""A model's images compared over its graph, and as one weighted vector each."""

import re

import pandas as pd
import pytest
import torch

from lookalike.methods.avsl import retrieval, scoring
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.retrieval import certified_queries
from lookalike.methods.avsl.scoring import ERROR, fixed_weights, graph, weighted_vectors
from lookalike.metrics.search import FirstMatches, FirstRank, Search, SearchOfClasses
from trainings import CLASSES, batch, learner


@pytest.fixture
def model():
    learning = learner("avsl")
    learning(*batch())  # from which its edges come
    return learning.model.eval()


def searched(model, seed=0):
    images, labels = batch(seed)
    with torch.no_grad():
        state = model(images.to(model.alpha.dtype)).state()
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


@pytest.fixture
def large(monkeypatch):
    """A gallery of nine counts as large; tells how often bounds were asked for."""
    asked = []

    def counted(*sides, **options):
        asked.append(sides[0].count)
        return certified_queries(*sides, **options)

    monkeypatch.setattr(scoring, "EVERY_PAIR", 8)
    monkeypatch.setattr(scoring, "certified_queries", counted)
    return asked


@pytest.mark.parametrize("variant", ["graph", "reliable_nodes"])
def test_a_large_gallery_is_searched_by_bounds_with_the_metrics_of_every_pair(model, large, variant, capsys):
    model.variant = variant
    model.double()
    state, search = searched(model)
    expected = search.by_score(
        *[Representation.from_state(state)] * 2, score=lambda some, others: -model.distance(some, others)
    )
    assert graph(model, state, state, search) == expected
    assert len(large) == 1
    assert re.search(r"^certified bounds: \d+\.\d\d% of the pairs", capsys.readouterr().out, re.MULTILINE)
    labels = search.query_labels
    first = FirstRank(labels, labels, (1,), self_match=True)
    assert graph(model, state, state, first) == {"R@1": expected["R@1"]}


@pytest.mark.parametrize(("rate", "moved"), [(1e-3, 0.01), (1.0, 3.0)])
def test_a_trained_model_is_searched_by_bounds_with_the_metrics_of_every_pair(large, rate, moved, monkeypatch):
    learning = learner("avsl")
    network = learning.model
    slopes = [network.alpha, network.beta]
    others = [each for each in learning.parameters() if all(each is not slope for slope in slopes)]
    optimiser = torch.optim.AdamW([{"params": others}, {"params": slopes, "lr": rate}], lr=1e-2)
    for step in range(30):
        optimiser.zero_grad()
        learning(*batch(step % 6)).backward()
        optimiser.step()
    assert float((network.alpha.detach() - 1).abs().max()) > moved  # they began at 1
    network.eval().double()
    images, labels = zip(*(batch(seed) for seed in range(6, 12)), strict=True)
    shown = torch.cat([CLASSES * place + of_batch for place, of_batch in enumerate(labels)])
    with torch.no_grad():
        state = network(torch.cat(images).double()).state()
    search = Search(shown, shown, (1, 2, 4), self_match=True)
    monkeypatch.setattr(retrieval, "MUTUAL", 20)  # several blocks
    expected = search.by_score(
        *[Representation.from_state(state)] * 2, score=lambda some, others: -network.distance(some, others)
    )
    assert expected["mAP"] < 1  # else any order would do
    assert graph(network, state, state, search) == expected


def test_bounds_keep_what_each_class_reached(model, large):
    model.double()
    state, search = searched(model)
    by_class = []
    for few in (8, 9):  # by bounds, and of every pair
        large.clear()
        scoring.EVERY_PAIR = few
        of_classes = SearchOfClasses(search.query_labels, search.gallery_labels, (1, 2), self_match=True)
        graph(model, state, state, of_classes)
        by_class.append(of_classes.means())
        assert len(large) == (few == 8)
    pd.testing.assert_frame_equal(*by_class)


def test_cameras_levels_scores_to_keep_and_a_learned_reliability_take_every_pair(model, large):
    state, search = searched(model)
    labels = search.query_labels
    cameras = torch.arange(len(labels))
    with_cameras = Search(labels, labels, (1,), self_match=True, query_cameras=cameras, gallery_cameras=cameras)
    with_levels = Search(labels, labels, (1,), self_match=True, levels={"coarse": (labels // 2, labels // 2)})
    assert "rank1" in graph(model, state, state, with_cameras)
    assert "mAP_coarse" in graph(model, state, state, with_levels)
    matches = FirstMatches(labels, labels, (), self_match=True, count=2)
    graph(model, state, state, matches)
    assert matches.found[0][1].isfinite().all()
    model.variant = "concat"
    graph(model, state, state, search)
    learning = learner("avsl_margin")
    learning(*batch())
    learned = learning.model.eval()
    state, search = searched(learned)
    graph(learned, state, state, search)
    assert not large


@pytest.mark.parametrize("variant", ["top", "concat"])
def test_a_variant_without_reliability_is_refused(model, variant):
    state, search = searched(model)
    model.variant = variant
    with pytest.raises(ValueError, match=f"'{variant}' has no weights that depend on the pair; score it by 'graph'"):
        fixed_weights(model, state, state, search)
