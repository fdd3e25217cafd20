"""Only candidates that can still be among the first are matched, and the first are those of matching all."""

from __future__ import annotations

import pytest
import torch

from lookalike.methods.diml import leading
from lookalike.methods.diml.leading import leading_similarity
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.representation import Representation
from lookalike.methods.diml.similarity import candidate_similarity


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
        monkeypatch.setattr(leading, name, value)
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
