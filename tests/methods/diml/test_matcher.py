"""Structural matching of representations: similarities, rankings and explanations."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.representation import Representation
from lookalike.methods.diml.similarity import structural_similarity, truncated_ranking


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
def test_ranking_agrees_with_the_function(clustered, truncation, self_match, score):
    matcher = StructuralMatcher(truncation=truncation, score=score)
    query = clustered if self_match else clustered[[0, 4, 5]]
    found = matcher.rank(query, clustered, self_match=self_match)
    sides = [part.to(torch.float64) for part in (query, clustered)]
    structural = structural_similarity(*(part for side in sides for part in (side.regions, side.global_vector)))
    similarity = sides[0].global_vector @ sides[1].global_vector.T
    k = 9 if truncation is None else truncation
    expected = truncated_ranking(similarity, structural, k, self_match=self_match, score=score)
    # Item 7 is a copy of item 2; a matrix product may round their scores apart, exact cosines may not.
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
