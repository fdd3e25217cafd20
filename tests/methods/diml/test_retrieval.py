"""Truncated rankings against sorted lists."""

from __future__ import annotations

import math

import pytest
import torch

from lookalike.methods.diml.similarity import truncated_ranking


def scores(queries=6, gallery=9, seed=0, coarse=False):
    generator = torch.Generator().manual_seed(seed)
    pair = torch.rand(2, queries, gallery, generator=generator, dtype=torch.float64)
    return ((4 * pair).round() / 4 if coarse else pair).unbind()


def ranking_by_loops(similarity, structural, truncation, self_match, alone=False):
    """Notes, section 3, with Python's stable sort."""
    result = []
    for q in range(len(similarity)):
        others = [g for g in range(similarity.shape[1]) if not (self_match and g == q)]
        others.sort(key=lambda g: -float(similarity[q, g]))
        head = others[:truncation]
        head.sort(key=lambda g: -float((0 if alone else similarity[q, g]) + structural[q, g]))
        result.append(head + others[truncation:] + ([q] if self_match else []))
    return torch.tensor(result)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("self_match", [False, True])
@pytest.mark.parametrize("truncation", [0, 1, 3, 8, 9, 100])
def test_ranking_agrees_with_loops(truncation, self_match, coarse):
    similarity, structural = scores(9 if self_match else 6, coarse=coarse)
    found = truncated_ranking(similarity, structural, truncation, self_match=self_match)
    assert found.dtype == torch.int64
    assert torch.equal(found, ranking_by_loops(similarity, structural, truncation, self_match))
    alone = truncated_ranking(similarity, structural, truncation, self_match=self_match, score="structural")
    assert torch.equal(alone, ranking_by_loops(similarity, structural, truncation, self_match, alone=True))


@pytest.mark.parametrize("self_match", [False, True])
def test_a_function_gives_the_same_as_its_matrix(self_match):
    similarity, structural = scores(9)
    asked = []

    def measure(query, candidates):
        assert isinstance(query, int)
        assert candidates.dtype == torch.int64
        asked.append(candidates.tolist())
        return structural[query, candidates]

    found = truncated_ranking(similarity, measure, 4, self_match=self_match)
    assert torch.equal(found, truncated_ranking(similarity, structural, 4, self_match=self_match))
    assert [len(candidates) for candidates in asked] == [4] * 9
    assert all(not (self_match and query in candidates) for query, candidates in enumerate(asked))


@pytest.mark.parametrize("truncation", [0, 1])
def test_short_truncations_keep_the_global_order(truncation):
    similarity, structural = scores()
    expected = similarity.argsort(dim=1, descending=True, stable=True)
    assert torch.equal(truncated_ranking(similarity, structural, truncation, self_match=False), expected)


def test_no_truncation_asks_for_no_structure():
    similarity, _ = scores()

    def measure(query, candidates):
        raise AssertionError

    assert truncated_ranking(similarity, measure, 0, self_match=False).shape == (6, 9)


def test_ties_keep_the_global_order():
    similarity, _ = scores()
    order = similarity.argsort(dim=1, descending=True, stable=True)
    assert torch.equal(truncated_ranking(similarity, 1 - similarity, 9, self_match=False), order)
    equal = torch.zeros(3, 3000)  # long enough for a sort that is not stable to show
    for truncation in (0, 3000):
        found = truncated_ranking(equal, equal, truncation, self_match=False)
        assert torch.equal(found, torch.arange(3000).expand(3, 3000))


def test_infinite_similarities_do_not_hide_the_query():
    similarity = torch.full((3, 3), -math.inf)
    expected = torch.tensor([[1, 2, 0], [0, 2, 1], [0, 1, 2]])
    assert torch.equal(truncated_ranking(similarity, torch.zeros(3, 3), 1, self_match=True), expected)


def test_a_query_alone_in_its_gallery_comes_last():
    one = torch.zeros(1, 1)
    assert truncated_ranking(one, one, 5, self_match=True).tolist() == [[0]]
    assert truncated_ranking(one, lambda query, candidates: one[0, candidates], 5, self_match=True).tolist() == [[0]]


def test_no_queries_give_no_rankings():
    none = torch.zeros(0, 4)
    assert truncated_ranking(none, none, 2, self_match=False).shape == (0, 4)
    assert truncated_ranking(none, lambda query, candidates: candidates.double(), 2, self_match=False).shape == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((torch.zeros(2, 3), torch.zeros(2, 3), -1), {"self_match": False}, "truncation=-1"),
        ((torch.zeros(2, 3), torch.zeros(2, 4), 1), {"self_match": False}, r"structural has shape \(2, 4\)"),
        ((torch.zeros(2, 3), torch.zeros(2, 3), 1), {"self_match": True}, "self_match=True needs Q = G"),
        ((torch.zeros(3), torch.zeros(3), 1), {"self_match": False}, r"global_similarity has shape \(3,\)"),
        ((torch.full((2, 3), math.nan), torch.zeros(2, 3), 1), {"self_match": False}, "NaN"),
        ((torch.zeros(2, 3), torch.full((2, 3), math.nan), 1), {"self_match": False}, "NaN"),
        ((torch.zeros(2, 3), lambda q, g: torch.zeros(4), 2), {"self_match": False}, r"returned shape \(4,\)"),
        ((torch.zeros(2, 3), torch.zeros(2, 3), 1), {"self_match": False, "score": "best"}, "score: unknown 'best'"),
    ],
)
def test_wrong_arguments_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        truncated_ranking(*arguments, **options)
