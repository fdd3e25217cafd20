"""A cosine is the sum of what its pairs of locations add, for every pooling that is a sum.

Structure and graph say of a pair what their methods say.
"""

import pytest
import torch

import lookalike
from lookalike.explanations.decomposition import by_activation, located_by, location_vectors
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import LocatedEmbedder
from trainings import CROP, batch, learner


def embedder(pooling, dim=8):
    return learner("embedder", {"embedding": {"pooling": pooling, "dim": dim}}).model.eval()


@pytest.mark.parametrize("dim", [8, None])
@pytest.mark.parametrize("pooling", ["average", "max", "average_max"])
def test_locations_sum_to_the_embedding(pooling, dim):
    model = embedder(pooling, dim)
    images = torch.randn(3, 3, CROP, CROP, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        vectors = location_vectors(model, model.trunk(images)[-1])
        torch.testing.assert_close(vectors.sum(dim=1).float(), model(images), atol=1e-6, rtol=1e-5)


def test_pairs_are_the_products_of_two_loops():
    model = embedder("average")
    images = torch.randn(2, 1, 3, CROP, CROP, generator=torch.Generator().manual_seed(1))
    found = by_activation(model, images)
    with torch.no_grad():
        maps = [model.trunk(image)[-1][0].double() for image in images]
    height, width = maps[0].shape[1:]
    weight, bias = model.head.weight.double(), model.head.bias.double()
    vectors = [
        [(weight @ each[:, row, column] + bias) / (height * width) for row in range(height) for column in range(width)]
        for each in maps
    ]
    lengths = [sum(each).norm() for each in vectors]
    for i, one in enumerate(vectors[0]):
        for j, other in enumerate(vectors[1]):
            assert float(found.pairs[0, i, j]) == pytest.approx(
                float((one @ other / lengths[0] / lengths[1]).detach()), abs=1e-7
            )
    assert found.grid == (height, width)
    assert float(found.maps[0][0, 0, 1]) == pytest.approx(float(found.pairs[0, 1].sum()))


def test_with_a_negative_the_querys_map_sums_to_the_margin():
    model = embedder("average_max")
    images = torch.randn(3, 2, 3, CROP, CROP, generator=torch.Generator().manual_seed(2))
    found, other = by_activation(model, images), by_activation(model, images[[0, 2]])
    torch.testing.assert_close(found.maps[0].sum(dim=(1, 2)), found.value - other.value)
    torch.testing.assert_close(found.maps[2].sum(dim=(1, 2)), other.value)


@pytest.mark.parametrize("pooling", ["gem", "max_layer_norm"])
def test_a_pooling_that_is_no_sum_is_refused(pooling):
    with pytest.raises(ValueError, match=f"not '{pooling}' and Linear"):
        by_activation(embedder(pooling), torch.zeros(2, 1, 3, CROP, CROP))


def pair(seed=0):
    return torch.randn(2, 3, 3, CROP, CROP, generator=torch.Generator().manual_seed(seed))


def test_an_embedder_is_matched_as_its_regions_are():
    model = learner("embedder").model.eval()
    query, gallery = pair()
    found = lookalike.explain(model, query, gallery, method="structure", side=3)
    located, matcher = located_by(model, 3), StructuralMatcher()
    with torch.no_grad():
        match = matcher.explain(located.represent(query), located.represent(gallery))
    assert found.pairs.shape == (3, 9, 9)
    for row in range(3):
        torch.testing.assert_close(found.pairs[row].float(), match.contributions[row, row], atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(found.value.float(), match.structural_similarity.diag(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("located", "matched"),
    [
        ({"pooling": "adaptive"}, {}),
        ({"global_vector": "locations"}, {}),
        ({}, {"marginal": "uniform"}),
        ({}, {"reg": 0.5}),
        ({}, {"solver": "exact"}),
    ],
)
def test_options_are_those_by_which_a_recipe_keeps_and_matches_locations(located, matched):
    model = learner("embedder").model.eval()
    query, gallery = pair()
    found = lookalike.explain(model, query, gallery, method="structure", side=2, **located, **matched)
    own = LocatedEmbedder(model, "trunk", 2, **located).eval()
    with torch.no_grad():
        seen = own.represent(torch.cat([query, gallery])).to(torch.float64)
        match = StructuralMatcher(**matched).explain(seen[:3], seen[3:])
    usual = lookalike.explain(model, query, gallery, method="structure", side=2)
    for row in range(3):
        torch.testing.assert_close(found.pairs[row], match.contributions[row, row], atol=1e-9, rtol=0)
        assert not torch.allclose(found.pairs[row], usual.pairs[row], atol=1e-7, rtol=0)


def test_an_option_that_structure_does_not_have_is_refused():
    model = learner("embedder").model.eval()
    with pytest.raises(ValueError, match=r"method 'structure': unknown 'marginals', did you mean 'marginal'"):
        lookalike.explain(model, *pair(), method="structure", marginals="uniform")


def test_features_without_a_head_are_their_own_locations():
    model = learner("embedder", {"embedding": {"dim": None}}).model.eval()
    found = lookalike.explain(model, *pair(), method="structure")
    assert found.grid == (4, 4)
    assert float(found.gap.max()) < 1e-6


def test_nodes_are_those_of_the_graph():
    learning = learner("avsl")
    learning(*batch())
    model = learning.model.eval()
    query, gallery = pair()
    found = lookalike.explain(model, query, gallery)
    with torch.no_grad():
        expected = model.explain(model(query), model(gallery))
    for row in range(3):
        torch.testing.assert_close(found.value[row].float(), expected.distance[row, row], atol=1e-6, rtol=1e-5)
        for level in range(3):
            for name, tensors in (
                ("reliability", expected.reliability),
                ("difference", expected.nodes),
                ("sensitivity", expected.sensitivities),
            ):
                torch.testing.assert_close(
                    getattr(found.nodes, name)[row, level], tensors[level][row, row], atol=1e-6, rtol=1e-4
                )
    assert len(found.nodes.edges) == 2
    assert found.maps[0].shape == (3, CROP, CROP)
