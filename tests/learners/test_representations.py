"""What is kept of pictures, by the name that recipes give it."""

import pytest
import torch

from lookalike.learners import LEARNERS
from lookalike.learners.representations import REPRESENTATIONS
from lookalike.methods.diml.model import DIML
from trainings import METHODS, batch, learner

EMBEDDING = {"embedding": (9, 8)}
GRAPH = {f"{field}.{level}": (9, 8) for field in ("embeddings", "statistics") for level in range(3)}
KEPT = {
    "embedder": EMBEDDING,
    "proxies": EMBEDDING,
    "projected": EMBEDDING,
    "sam": EMBEDDING,
    "sam_parts": {"embedding": (9, 9)},
    "diml": {**EMBEDDING, "regions": (9, 4, 8)},
    "avsl": GRAPH,
    "avsl_margin": GRAPH,
}


def model_of(method):
    each = learner(method)
    each(*batch())
    return each.eval().model


def kept(name, method, model, seed=0, **options):
    kind = LEARNERS[METHODS[method].get("method", {"name": "embedder"})["name"]]
    with torch.inference_mode():
        return REPRESENTATIONS[name](kind, seed=seed, **options)(model, batch()[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_method_keeps_a_row_per_picture_of_all_that_its_comparison_needs(method):
    model = model_of(method)
    found = kept("own", method, model)
    assert {name: tuple(tensor.shape) for name, tensor in found.items()} == KEPT[method]
    assert all(tensor.dtype == torch.float32 for tensor in found.values())


def test_an_embedder_keeps_its_embeddings_as_they_are():
    model = model_of("embedder")
    with torch.inference_mode():
        assert torch.equal(kept("own", "embedder", model)["embedding"], model(batch()[0]))


def test_a_network_trained_by_structure_keeps_the_mean_of_its_locations():
    found = kept("own", "diml", model_of("diml"))
    torch.testing.assert_close(found["regions"].norm(dim=-1), torch.ones(9, 4), atol=1e-5, rtol=0)
    torch.testing.assert_close(found["embedding"].norm(dim=-1), torch.ones(9), atol=1e-5, rtol=0)
    model = model_of("diml")
    with torch.inference_mode():
        mean = model.regions(batch()[0]).mean(dim=1)
    torch.testing.assert_close(found["embedding"], mean / mean.norm(dim=1, keepdim=True), atol=1e-5, rtol=0)


@pytest.mark.parametrize("method", ["embedder", "sam"])
@pytest.mark.parametrize("global_vector", ["embedding", "locations"])
@pytest.mark.parametrize("side", [1, 3])
def test_locations_of_an_embedder_are_those_of_structural_matching(method, global_vector, side):
    model = model_of(method)
    options = {"side": side, "pooling": "adaptive", "global_vector": global_vector}
    found = kept("locations", method, model, **options)
    with torch.inference_mode():
        expected = DIML(model, "trunk", **options).represent(batch()[0])
    assert found.keys() == {"embedding", "regions"}
    assert torch.equal(found["regions"], expected.regions)
    assert torch.equal(found["embedding"], expected.global_vector)
    assert found["regions"].shape == (9, side * side, 8)


def test_the_embedding_beside_the_locations_points_where_the_embedder_does():
    model = model_of("embedder")
    own, located = kept("own", "embedder", model), kept("locations", "embedder", model, side=3)
    unit = own["embedding"] / own["embedding"].norm(dim=1, keepdim=True)
    torch.testing.assert_close(located["embedding"], unit, atol=1e-5, rtol=0)


def test_chance_is_a_unit_vector_per_picture_whatever_picture_and_network():
    first = kept("random_vectors", "embedder", model_of("embedder"), dim=5)["embedding"]
    again = kept("random_vectors", "avsl", None, dim=5)["embedding"]
    assert torch.equal(first, again)
    assert first.shape == (9, 5)
    assert first.unique(dim=0).shape == (9, 5)  # none twice, though pictures of a batch may be equal
    torch.testing.assert_close(first.norm(dim=1), torch.ones(9), atol=1e-6, rtol=0)
    assert not torch.equal(first, kept("random_vectors", "embedder", None, seed=1, dim=5)["embedding"])


def test_chance_goes_on_drawing_from_batch_to_batch():
    draw = REPRESENTATIONS["random_vectors"](LEARNERS["embedder"], seed=3, dim=4)
    whole = REPRESENTATIONS["random_vectors"](LEARNERS["embedder"], seed=3, dim=4)
    images = batch()[0]
    parts = torch.cat([draw(None, images[:4])["embedding"], draw(None, images[4:])["embedding"]])
    assert not torch.equal(parts[:4], parts[4:8])
    assert torch.equal(parts[:4], whole(None, images)["embedding"][:4])


def test_chance_finds_a_positive_as_often_as_there_are_any():
    from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings

    draw = REPRESENTATIONS["random_vectors"](LEARNERS["embedder"], seed=0, dim=64)
    embeddings, labels = draw(None, torch.zeros(2000, 1))["embedding"], torch.arange(2000) % 20
    found = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=(1,), self_match=True)
    assert found["R@1"] == pytest.approx(99 / 1999, abs=0.02)
    assert found["RP"] == pytest.approx(99 / 1999, abs=0.005)
