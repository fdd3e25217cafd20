"""Every scoring gives the metrics of the public functions that it stands on."""

import pytest
import torch

from lookalike.learners.scorings import SCORINGS
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.similarity import overall_distance
from lookalike.methods.contextual.retrieval import rerank
from lookalike.methods.diml.similarity import structural_similarity, truncated_ranking
from lookalike.metrics.definitions import count_positives
from lookalike.metrics.retrieval import retrieval_metrics, retrieval_metrics_from_ranking
from lookalike.metrics.search import Search
from trainings import learner

LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 3, 0])  # a class of five, a class of one
GALLERY_LABELS = torch.tensor([2, 1, 0, 0, 3, 1, 0, 2, 4])
SIDES = pytest.mark.parametrize("self_match", [True, False], ids=["test", "query_gallery"])
COUNTED = pytest.mark.parametrize("count_query_in_r", [False, True])
KS = (1, 2, 4, 8)


def search(self_match, count_query_in_r=False):
    gallery = LABELS if self_match else GALLERY_LABELS
    return Search(LABELS, gallery, KS, self_match=self_match, count_query_in_r=count_query_in_r)


def sides(draw, self_match):
    """Representations of the queries and of what they search."""
    generator = torch.Generator().manual_seed(3)
    query = draw(len(LABELS), generator)
    return (query, query) if self_match else (query, draw(len(GALLERY_LABELS), generator))


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
def test_cosine_is_retrieval_by_the_cosine_matrix(self_match, count_query_in_r):
    query, gallery = sides(embeddings, self_match)
    of = search(self_match, count_query_in_r)
    found = SCORINGS["cosine"](torch.nn.Identity(), query, gallery, of)
    assert found == pytest.approx(expected_of(unit(query["embedding"]) @ unit(gallery["embedding"]).T, of), abs=1e-12)


@SIDES
@pytest.mark.parametrize("reliability", ["deviation", "learned"])
def test_graph_is_retrieval_by_minus_the_overall_distance(self_match, reliability):
    model = learner("avsl", {"method": {"reliability": reliability, "sigmoid_scale": 3.0}}).model
    with torch.no_grad():
        model.alpha.uniform_(0.5, 2)
        model.beta.uniform_(-1, 1)
        model(torch.randn(6, 3, 24, 24, generator=torch.Generator().manual_seed(0)))  # edges

    def draw(count, generator):
        return {
            f"{field}.{level}": torch.randn(count, 8, generator=generator).abs()
            for field in ("embeddings", "statistics")
            for level in range(3)
        }

    query, gallery = sides(draw, self_match)
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
        found = SCORINGS["graph"](model, query, gallery, search(self_match))
    assert Representation.from_state(query).state().keys() == query.keys()
    assert found == expected_of(-distance, search(self_match))


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


def test_structural_matching_reads_the_embedder_of_a_trained_structure_alike():
    query, gallery = sides(located, True)
    trained, plain = learner("diml").model, learner("embedder").model
    found = [
        SCORINGS["structural_matching"](model, query, gallery, search(True), truncation=5) for model in (trained, plain)
    ]
    assert found[0] == found[1]
    assert "mAP" not in found[0]


@COUNTED
@pytest.mark.parametrize(("k", "beta"), [(1, 0.5), (4, 0.1), (12, 1.0)])
def test_shared_neighbours_is_retrieval_by_the_reranked_matrix(count_query_in_r, k, beta):
    query, gallery = sides(embeddings, True)
    of = search(True, count_query_in_r)
    found = SCORINGS["shared_neighbours"](torch.nn.Identity(), query, gallery, of, k=k, beta=beta)
    rows = unit(query["embedding"])
    assert found == pytest.approx(expected_of(rerank(rows @ rows.T, k, beta), of), abs=1e-12)


def test_shared_neighbours_need_one_set():
    query, gallery = sides(embeddings, False)
    with pytest.raises(ValueError, match=r"'shared_neighbours' needs a test set that searches itself"):
        SCORINGS["shared_neighbours"](torch.nn.Identity(), query, gallery, search(False), k=2)
