"""Structural matching of representations: similarities, rankings and explanations.

Only candidates that can still be among the first are matched, and the first are those of matching all.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lookalike.methods.diml import matcher
from lookalike.methods.diml.matcher import StructuralMatcher, leading_similarity
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.representation import Representation
from lookalike.methods.diml.similarity import candidate_similarity, structural_similarity, truncated_ranking


@pytest.fixture
def clustered(make_images):
    """Nine images with one exact duplicate."""
    regions, vectors = make_images(9, locations=4, seed=3, dtype=torch.float32)
    regions[7], vectors[7] = regions[2], vectors[2]
    return Representation(regions, vectors)


@pytest.mark.parametrize("score", ["sum", "structural"])
@pytest.mark.parametrize("marginal", ["uniform", "cross_correlation"])
def test_similarity_is_global_plus_structural_or_structural_alone(clustered, score, marginal):
    matcher = StructuralMatcher(score=score, marginal=marginal, reg=0.1)
    parts = clustered.regions, clustered.global_vector
    expected = structural_similarity(*parts, *parts, marginal=marginal, reg=0.1)
    if score == "sum":
        expected = expected + clustered.global_vector @ clustered.global_vector.T
    torch.testing.assert_close(matcher.similarity(clustered, clustered), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("truncation", [0, 1, 3, 8, 50, None])
@pytest.mark.parametrize("score", ["sum", "structural"])
def test_ranking_agrees_with_the_function(clustered, truncation, self_match, score, device):
    clustered = Representation(clustered.regions.to(device), clustered.global_vector.to(device))
    matcher = StructuralMatcher(truncation=truncation, score=score)
    query = clustered if self_match else clustered[[0, 4, 5]]
    found = matcher.rank(query, clustered, self_match=self_match)
    sides = [part.to(torch.float64) for part in (query, clustered)]
    structural = structural_similarity(*(part for side in sides for part in (side.regions, side.global_vector)))
    similarity = sides[0].global_vector @ sides[1].global_vector.T
    k = 9 if truncation is None else truncation
    expected = truncated_ranking(similarity, structural, k, self_match=self_match, score=score)
    # Item 7 is a copy of item 2; a matrix product may round their scores apart, exact cosines may not.
    found, expected = found.cpu(), expected.cpu()
    assert torch.equal(found.where(found != 7, 2), expected.where(expected != 7, 2))
    assert torch.equal(found.sort(1).values, torch.arange(9).expand(len(query), 9))
    if self_match:
        assert torch.equal(found[:, -1], torch.arange(9))


def test_duplicates_keep_the_order_of_the_gallery(clustered):
    for truncation in (0, 9):
        ranking = StructuralMatcher(truncation).rank(clustered[[0, 1, 3]], clustered).tolist()
        assert all(row.index(2) < row.index(7) for row in ranking)


def test_several_truncations_equal_one_at_a_time(clustered):
    truncations = [0, 5, 1, 30, 3]
    found = StructuralMatcher().rankings(clustered, clustered, truncations, self_match=True)
    for ranking, truncation in zip(found, truncations, strict=True):
        assert torch.equal(ranking, StructuralMatcher(truncation).rank(clustered, clustered, self_match=True))


@pytest.mark.parametrize("depth", [1, 2, 5, 8])
def test_depth_cuts_the_ranking(clustered, depth):
    matcher = StructuralMatcher(truncation=4)
    whole = matcher.rank(clustered, clustered, self_match=True)
    assert torch.equal(matcher.rank(clustered, clustered, self_match=True, depth=depth), whole[:, :depth])


def test_blocks_do_not_change_the_ranking(clustered, monkeypatch):
    matcher = StructuralMatcher(truncation=6)
    whole = matcher.rank(clustered, clustered)
    monkeypatch.setattr("lookalike.methods.diml.matching._BLOCK_VALUES_CPU", 1)
    assert torch.equal(matcher.rank(clustered, clustered), whole)


def test_explanation_adds_up(clustered):
    matcher = StructuralMatcher(3)
    query = clustered[:2]
    found = matcher.explain(query, clustered)
    assert found.contributions.shape == (2, 9, 4, 4)
    torch.testing.assert_close(found.contributions.sum((2, 3)), found.structural_similarity, atol=1e-6, rtol=0)
    total = found.structural_similarity + found.global_similarity
    torch.testing.assert_close(total, matcher.similarity(query, clustered), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.match.plan.sum(3), found.match.query_marginal, atol=2e-6, rtol=0)
    torch.testing.assert_close(found.match.plan.sum(2), found.match.gallery_marginal, atol=2e-6, rtol=0)
    torch.testing.assert_close(found.relative_plan.mean((2, 3)), torch.ones(2, 9), atol=1e-4, rtol=0)
    for maps in found.attention((8, 8)):
        assert maps.shape == (2, 9, 8, 8)
        torch.testing.assert_close(maps.sum((2, 3)), torch.ones(2, 9), atol=1e-5, rtol=0)


def test_uniform_plan_is_one_everywhere():
    regions = F.normalize(torch.ones(2, 4, 6), dim=2)
    found = StructuralMatcher(marginal="uniform").explain(*[Representation(regions, regions[:, 0])] * 2)
    torch.testing.assert_close(found.relative_plan, torch.ones(2, 2, 4, 4), atol=1e-5, rtol=0)


def test_matching_is_configured_once():
    matcher = StructuralMatcher(marginal="uniform", reg=0.1, tolerance=1e-4, solver="exact")
    assert matcher.matching == Matching("uniform", 0.1, 1e-4, "exact")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truncation": -1}, "truncation=-1"),
        ({"score": "product"}, "score: unknown 'product'"),
        ({"marginal": "none"}, "marginal: unknown 'none'"),
        ({"solver": "none"}, "solver: unknown 'none'"),
        ({"reg": 0.0}, "reg=0.0"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        StructuralMatcher(**options)


def test_sides_and_depths_that_do_not_fit_are_refused(clustered):
    matcher = StructuralMatcher(3)
    with pytest.raises(ValueError, match="Q = G"):
        matcher.rank(clustered[:3], clustered, self_match=True)
    with pytest.raises(ValueError, match="truncation=-2"):
        matcher.rankings(clustered, clustered, [1, -2])
    for depth in (0, 10):
        with pytest.raises(ValueError, match=f"depth={depth} is outside"):
            matcher.rank(clustered, clustered, depth=depth)


@pytest.fixture
def images(make_images):
    """Forty images of five kinds, with one exact duplicate."""
    generator = torch.Generator().manual_seed(5)
    regions, vectors = make_images(5, locations=9, seed=3, dtype=torch.float32)
    kinds = torch.arange(40) % 5
    noise = 0.15 * torch.randn(40, 9, regions.shape[2], generator=generator)
    regions = torch.nn.functional.normalize(regions[kinds] + noise, dim=2)
    vectors = torch.nn.functional.normalize(vectors[kinds] + noise.mean(dim=1), dim=1)
    regions[27], vectors[27] = regions[12], vectors[12]
    return regions, vectors


@pytest.fixture
def solved(monkeypatch):
    """How many pairs had a plan made."""
    counts = []
    plans = Matching.plans

    def counted(self, cost, rows, columns):
        counts.append(len(cost))
        return plans(self, cost, rows, columns)

    monkeypatch.setattr(Matching, "plans", counted)
    return counts


def candidates_of(queries):
    """All images but the query itself, in an order of each query's own."""
    generator = torch.Generator().manual_seed(7)
    orders = [torch.randperm(40, generator=generator) for _ in range(queries)]
    return torch.stack([order[order != query] for query, order in enumerate(orders)])


@pytest.mark.parametrize(
    "matching",
    [Matching(), Matching("uniform", reg=0.2), Matching("swapped", tolerance=1e-2), Matching(solver="exact")],
    ids=str,
)
@pytest.mark.parametrize("depth", [1, 4, 38, 39])
def test_the_largest_sums_are_those_of_all_candidates(images, matching, depth, solved):
    query = [side[:6] for side in images]
    own = candidates_of(6)
    others = torch.einsum("qd,qkd->qk", query[1], images[1][own])
    found = leading_similarity(Representation(*query), Representation(*images), own, others, depth, matching)
    needed = sum(solved)
    everything = candidate_similarity(*query, *images, own, matching)
    sums = others + everything
    order = (others + found).argsort(dim=1, descending=True, stable=True)[:, :depth]
    expected = sums.sort(dim=1, descending=True).values[:, :depth]
    torch.testing.assert_close(sums.gather(1, order), expected, atol=1e-6, rtol=0)  # nearer ones may change places
    made = found.isfinite()
    torch.testing.assert_close(found[made], everything[made], atol=1e-6, rtol=0)
    assert needed == int(made.sum()) < 6 * 39 * (0.5 if depth < 5 else 1.01)


def test_small_blocks_change_nothing(images, monkeypatch):
    gallery = Representation(*images)
    own = candidates_of(6)
    sides = gallery[:6], gallery, own, torch.zeros(6, 39), 3, Matching()
    expected = leading_similarity(*sides)
    for name, value in (("SOLVED", 2), ("VALUES", 1)):
        monkeypatch.setattr(matcher, name, value)
        torch.testing.assert_close(leading_similarity(*sides), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("score", ["sum", "structural"])
@pytest.mark.parametrize("truncation", [10, None])
@pytest.mark.parametrize("depth", [1, 5])
def test_first_ranks_are_those_of_the_whole_ranking(images, score, truncation, depth, solved):
    gallery = Representation(*images)
    matcher = StructuralMatcher(truncation, score)
    found = matcher.rank(gallery, gallery, self_match=True, depth=depth)
    needed = sum(solved)
    solved.clear()
    assert torch.equal(found, matcher.rank(gallery, gallery, self_match=True)[:, :depth])
    assert needed < sum(solved)


def test_a_solver_that_looks_at_all_candidates_together_gets_them_all(images):
    gallery = Representation(*images)
    matcher = StructuralMatcher(10, solver="released")
    found = matcher.rank(gallery, gallery, self_match=True, depth=2)
    assert torch.equal(found, matcher.rank(gallery, gallery, self_match=True)[:, :2])
    with pytest.raises(ValueError, match="'released' solves all candidates of a query together, not single pairs"):
        leading_similarity(gallery, gallery, torch.zeros(40, 2).long(), torch.zeros(40, 2), 1, matcher.matching)


@pytest.mark.parametrize("depth", [0, 3])
def test_a_depth_beyond_the_candidates_is_refused(images, depth):
    gallery = Representation(*images)
    with pytest.raises(ValueError, match=rf"depth={depth} is outside \[1, 2\], the candidates of a query"):
        leading_similarity(gallery, gallery, torch.zeros(40, 2).long(), torch.zeros(40, 2), depth, Matching())
