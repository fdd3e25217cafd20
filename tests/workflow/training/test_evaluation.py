"""What is kept of pictures, by the name that recipes give it.

Every scoring gives the metrics of the public functions that it stands on.
Representations of many pictures, in as many at once as the memory holds.
"""

import pytest
import torch

from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.similarity import overall_distance
from lookalike.methods.contextual.retrieval import rerank
from lookalike.methods.diml.model import DIML
from lookalike.methods.diml.similarity import structural_similarity, truncated_ranking
from lookalike.metrics.definitions import count_positives
from lookalike.metrics.retrieval import retrieval_metrics, retrieval_metrics_from_ranking
from lookalike.metrics.search import Search
from lookalike.workflow.training.evaluation import REPRESENTATIONS, SCORINGS, represent_images
from lookalike.workflow.training.methods import LEARNERS
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


def model_of(method, device="cpu"):
    each = learner(method).to(device)
    each(*(part.to(device) for part in batch()))
    return each.eval().model


def kept(name, method, model, seed=0, device="cpu", **options):
    kind = LEARNERS[METHODS[method].get("method", {"name": "embedder"})["name"]]
    with torch.inference_mode():
        return REPRESENTATIONS[name](kind, seed=seed, **options)(model, batch()[0].to(device))


@pytest.mark.parametrize("method", METHODS)
def test_a_method_keeps_a_row_per_picture_of_all_that_its_comparison_needs(method, device):
    model = model_of(method, device)
    found = kept("own", method, model, device=device)
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


LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 3, 0])  # a class of five, a class of one
GALLERY_LABELS = torch.tensor([2, 1, 0, 0, 3, 1, 0, 2, 4])
SIDES = pytest.mark.parametrize("self_match", [True, False], ids=["test", "query_gallery"])
COUNTED = pytest.mark.parametrize("count_query_in_r", [False, True])
KS = (1, 2, 4, 8)


def search(self_match, count_query_in_r=False, device="cpu"):
    query, gallery = (each.to(device) for each in (LABELS, LABELS if self_match else GALLERY_LABELS))
    return Search(query, gallery, KS, self_match=self_match, count_query_in_r=count_query_in_r)


def sides(draw, self_match, device="cpu"):
    """Representations of the queries and of what they search."""
    generator = torch.Generator().manual_seed(3)
    query = {name: part.to(device) for name, part in draw(len(LABELS), generator).items()}
    if self_match:
        return query, query
    return query, {name: part.to(device) for name, part in draw(len(GALLERY_LABELS), generator).items()}


def embeddings(count, generator):
    return {"embedding": 3 * torch.randn(count, 6, generator=generator, dtype=torch.float64)}


def located(count, generator):
    regions = torch.randn(count, 4, 6, generator=generator, dtype=torch.float64)
    regions, mean = (each / each.norm(dim=-1, keepdim=True) for each in (regions, regions.mean(dim=1)))
    return {"embedding": mean, "regions": regions}


def unit(rows):
    return rows / rows.norm(dim=1, keepdim=True)


def expected_of(scores, of):
    return retrieval_metrics(
        scores,
        of.query_labels,
        of.gallery_labels,
        ks=KS,
        self_match=of.self_match,
        count_query_in_r=of.count_query_in_r,
    )


@SIDES
@COUNTED
def test_cosine_is_retrieval_by_the_cosine_matrix(self_match, count_query_in_r, device):
    query, gallery = sides(embeddings, self_match, device)
    of = search(self_match, count_query_in_r, device)
    found = SCORINGS["cosine"](torch.nn.Identity(), query, gallery, of)
    assert found == pytest.approx(expected_of(unit(query["embedding"]) @ unit(gallery["embedding"]).T, of), abs=1e-12)


@SIDES
@pytest.mark.parametrize("reliability", ["deviation", "learned"])
def test_graph_is_retrieval_by_minus_the_overall_distance(self_match, reliability, device):
    model = learner("avsl", {"method": {"reliability": reliability, "sigmoid_scale": 3.0}}).model.to(device)
    with torch.no_grad():
        model.alpha.uniform_(0.5, 2)
        model.beta.uniform_(-1, 1)
        model(torch.randn(6, 3, 24, 24, generator=torch.Generator().manual_seed(0)).to(device))  # edges

    def draw(count, generator):
        return {
            f"{field}.{level}": torch.randn(count, 8, generator=generator).abs()
            for field in ("embeddings", "statistics")
            for level in range(3)
        }

    query, gallery = sides(draw, self_match, device)
    parts = [
        [side[f"{field}.{level}"] for level in range(3)]
        for side in (query, gallery)
        for field in ("embeddings", "statistics")
    ]
    assert isinstance(model, AVSL)
    with torch.no_grad():
        distance = overall_distance(
            *parts, alpha=[None, *model.alpha], beta=[None, *model.beta], edges=model.edges(), scale=3.0
        )
        found = SCORINGS["graph"](model, query, gallery, search(self_match, device=device))
    assert Representation.from_state(query).state().keys() == query.keys()
    assert found == expected_of(-distance, search(self_match, device=device))


@SIDES
@COUNTED
@pytest.mark.parametrize("truncation", [0, 1, 3, 4, 6, 8, 50, None])  # R is 4 at most, 5 with the query
@pytest.mark.parametrize("options", [{}, {"marginal": "uniform", "score": "structural", "reg": 0.1}])
def test_structural_matching_is_the_truncated_ranking(self_match, count_query_in_r, truncation, options):
    query, gallery = sides(located, self_match)
    of = search(self_match, count_query_in_r)
    found = SCORINGS["structural_matching"](
        learner("embedder").model, query, gallery, of, truncation=truncation, **options
    )
    matching = {key: value for key, value in options.items() if key != "score"}
    structural = structural_similarity(
        query["regions"], query["embedding"], gallery["regions"], gallery["embedding"], **matching
    )
    ranking = truncated_ranking(
        query["embedding"] @ gallery["embedding"].T,
        structural,
        1000 if truncation is None else truncation,
        self_match=self_match,
        score=options.get("score", "sum"),
    )
    expected = retrieval_metrics_from_ranking(
        ranking[:, : ranking.shape[1] - self_match],  # the query itself comes last
        of.query_labels,
        of.gallery_labels,
        class_sizes=count_positives(of.query_labels, of.gallery_labels, self_match=self_match),
        ks=KS,
        count_query_in_r=count_query_in_r,
    )
    assert found == expected


def test_structural_matching_reads_the_embedder_of_a_trained_structure_alike(device):
    query, gallery = sides(located, True, device)
    of = search(True, device=device)
    trained, plain = learner("diml").model, learner("embedder").model
    found = [SCORINGS["structural_matching"](model, query, gallery, of, truncation=5) for model in (trained, plain)]
    assert found[0] == found[1]
    assert "mAP" not in found[0]


@COUNTED
@pytest.mark.parametrize(("k", "beta"), [(1, 0.5), (4, 0.1), (12, 1.0)])
def test_shared_neighbours_is_retrieval_by_the_reranked_matrix(count_query_in_r, k, beta, device):
    query, gallery = sides(embeddings, True, device)
    of = search(True, count_query_in_r, device)
    found = SCORINGS["shared_neighbours"](torch.nn.Identity(), query, gallery, of, k=k, beta=beta)
    rows = unit(query["embedding"])
    assert found == pytest.approx(expected_of(rerank(rows @ rows.T, k, beta), of), abs=1e-12)


def test_shared_neighbours_need_one_set():
    query, gallery = sides(embeddings, False)
    with pytest.raises(ValueError, match=r"'shared_neighbours' needs a test set that searches itself"):
        SCORINGS["shared_neighbours"](torch.nn.Identity(), query, gallery, search(False), k=2)


class Loaded:
    """Pictures that are there already."""

    def __init__(self, images):
        self.images = images

    def batches(self, order, *, seed):
        return ((self.images[rows], rows) for rows in order)


def represent(most, asked):
    """What a device does that holds no more than some pictures."""

    def function(model, pictures):
        asked.append(len(pictures))
        if len(pictures) > most:
            raise torch.OutOfMemoryError(f"no memory for {len(pictures)}")
        return {"own": model(pictures)}

    return function


@pytest.mark.parametrize(("most", "fits"), [(1, 1), (3, 2), (100, 8)])
def test_fewer_pictures_at_once_are_tried_until_they_fit(most, fits):
    images, asked, model = torch.arange(11.0)[:, None], [], torch.nn.Dropout(0.5)
    found = represent_images(represent(most, asked), model, Loaded(images), batch_size=8)
    assert torch.equal(found["own"], images)
    assert not model.training
    assert max(asked[-11 // fits :]) == fits


def test_a_device_without_memory_for_one_picture_says_so():
    with pytest.raises(torch.OutOfMemoryError, match="no memory for 1"):
        represent_images(represent(0, []), torch.nn.Identity(), Loaded(torch.ones(3, 1)), batch_size=8)
