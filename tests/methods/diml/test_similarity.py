"""Structural similarity and distance against loops over pairs and locations, with plans from POT."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from lookalike.methods.diml import matching
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.similarity import (
    candidate_similarity,
    location_distance,
    marginals,
    structural_distance,
    structural_similarity,
)
from lookalike.methods.diml.transport import released_plans


def structural_by_loops(query, gallery, *, kind="cross_correlation", reg=0.05, exact=False, distance=False):
    """Notes, section 2, one pair and one pair of locations at a time."""
    import ot  # a machine with a card may lack it

    result = torch.zeros(len(query[0]), len(gallery[0]), dtype=torch.float64)
    for q, (left, left_global) in enumerate(zip(*query, strict=True)):
        for g, (right, right_global) in enumerate(zip(*gallery, strict=True)):
            mu = [max(0.0, float(z @ right_global)) if kind != "uniform" else 1.0 for z in left]
            nu = [max(0.0, float(z @ left_global)) if kind != "uniform" else 1.0 for z in right]
            mu = torch.tensor([m / sum(mu) if sum(mu) else 1 / len(mu) for m in mu], dtype=torch.float64)
            nu = torch.tensor([n / sum(nu) if sum(nu) else 1 / len(nu) for n in nu], dtype=torch.float64)
            cost = torch.tensor([[1 - float(x @ y) for y in right] for x in left], dtype=torch.float64)
            rows, columns = mu.nonzero().flatten(), nu.nonzero().flatten()  # POT's plain iterations divide by marginals
            problem = mu[rows].numpy(), nu[columns].numpy(), cost[rows][:, columns].numpy()
            plan = (
                ot.emd(*problem) if exact else ot.sinkhorn(*problem, reg, stopThr=1e-11, numItermax=20_000, warn=False)
            )
            for i, x in enumerate(left[rows]):
                for j, y in enumerate(right[columns]):
                    result[q, g] += plan[i, j] * float((x - y).norm() if distance else x @ y)
    return result


@pytest.mark.parametrize("kind", ["cross_correlation", "uniform"])
@pytest.mark.parametrize("reg", [0.05, 0.2])
def test_similarity_agrees_with_loops(query, gallery, kind, reg):
    found = structural_similarity(*query, *gallery, marginal=kind, reg=reg)
    expected = structural_by_loops(query, gallery, kind=kind, reg=reg)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)


def test_exact_similarity_agrees_with_loops(query, gallery):
    found = structural_similarity(*query, *gallery, solver="exact")
    torch.testing.assert_close(found, structural_by_loops(query, gallery, exact=True), atol=1e-12, rtol=0)
    assert (found >= structural_similarity(*query, *gallery) - 1e-6).all()  # the least cost of all plans


@pytest.mark.parametrize("exact", [False, True])
def test_distance_agrees_with_loops(query, gallery, exact):
    solver = "exact" if exact else "sinkhorn"
    expected = structural_by_loops(query, gallery, exact=exact, distance=True)
    torch.testing.assert_close(structural_distance(*query, *gallery, solver=solver), expected, atol=3e-6, rtol=0)


def test_cosine_distance_is_one_minus_the_similarity(query, gallery):
    found = structural_distance(*query, *gallery, "cosine", tolerance=0.0)
    expected = 1 - structural_similarity(*query, *gallery, tolerance=0.0)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_exchanging_the_sides_transposes_the_result(query, gallery):
    for measure in (structural_similarity, structural_distance):
        torch.testing.assert_close(measure(*query, *gallery), measure(*gallery, *query).T, atol=2e-6, rtol=0)


def test_order_of_locations_does_not_matter(query, gallery):
    order = torch.tensor([2, 0, 3, 1])
    found = structural_similarity(query[0][:, order], query[1], *gallery, tolerance=0.0)
    torch.testing.assert_close(found, structural_similarity(*query, *gallery, tolerance=0.0), atol=1e-12, rtol=0)


def test_a_copy_of_an_image_is_most_similar_to_it(make_images):
    regions, vectors = make_images(6, locations=9, dim=32)
    similarity = structural_similarity(regions, vectors, regions, vectors, reg=0.01)
    assert torch.equal(similarity.argmax(1), torch.arange(6))
    assert similarity.diagonal().min() > 0.99
    assert structural_distance(regions, vectors, regions, vectors, solver="exact").diagonal().max() < 1e-6


@pytest.mark.parametrize("pairs", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("solver", ["sinkhorn", "released"])
def test_results_do_not_depend_on_the_blocks(query, gallery, monkeypatch, pairs, solver):
    whole = structural_similarity(*query, *gallery, solver=solver)
    monkeypatch.setattr(matching, "_BLOCK_VALUES_CPU", 16 * pairs)
    torch.testing.assert_close(structural_similarity(*query, *gallery, solver=solver), whole, atol=1e-13, rtol=0)


def test_one_location_gives_the_cosine_of_the_global_vectors(make_images):
    (left, _), (right, _) = make_images(3, locations=1, seed=1), make_images(4, locations=1, seed=2)
    found = structural_similarity(left, left[:, 0], right, right[:, 0])
    torch.testing.assert_close(found, left[:, 0] @ right[:, 0].T, atol=1e-12, rtol=0)


@pytest.mark.parametrize("measure", [structural_similarity, structural_distance])
def test_float32_agrees_with_float64(make_images, measure):
    left, right = make_images(4, locations=16, dim=32, seed=1), make_images(5, locations=16, dim=32, seed=2)
    single = measure(*(part.float() for part in (*left, *right)))
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), measure(*left, *right), atol=3e-6, rtol=0)
    half = measure(*(part.half() for part in (*left, *right)))
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.double(), measure(*left, *right), atol=5e-3, rtol=0)


@pytest.mark.parametrize("solver", ["sinkhorn", "exact", "released"])
def test_collapsed_embeddings_give_numbers(solver):
    regions = F.normalize(torch.ones(3, 4, 6), dim=-1)
    similarity = structural_similarity(regions, regions[:, 0], regions, regions[:, 0], solver=solver)
    torch.testing.assert_close(similarity, torch.ones(3, 3), atol=1e-5, rtol=0)
    distance = structural_distance(regions, regions[:, 0], regions, regions[:, 0], solver=solver)
    assert distance.max() < 1e-3
    opposite = structural_similarity(regions, regions[:, 0], -regions, -regions[:, 0], solver=solver)
    torch.testing.assert_close(opposite, -torch.ones(3, 3), atol=1e-5, rtol=0)
    nothing = structural_similarity(0 * regions, 0 * regions[:, 0], regions, regions[:, 0], solver=solver)
    assert torch.equal(nothing, torch.zeros(3, 3))


def test_no_images_give_empty_results(query, gallery):
    none = query[0][:0], query[1][:0]
    assert structural_similarity(*none, *gallery).shape == (0, 5)
    assert structural_similarity(*query, *none).shape == (3, 0)
    assert structural_similarity(*none, *none, solver="exact").shape == (0, 0)
    assert structural_similarity(*none, *none, solver="released").shape == (0, 0)


def test_released_solver_stops_for_the_candidates_of_a_query_together(query, gallery):
    found = structural_similarity(*query, *gallery, solver="released")
    mu, nu = marginals(*query, *gallery)
    for q in range(3):
        correlation = gallery[0] @ query[0][q].T  # rows are the gallery image's locations
        plan = released_plans(1 - correlation, nu[q], mu[q])
        torch.testing.assert_close(found[q], (plan * correlation).sum((1, 2)), atol=1e-12, rtol=0)
    torch.testing.assert_close(found, structural_similarity(*query, *gallery), atol=2e-2, rtol=0)


@pytest.mark.parametrize("pairs", [1, 2, 3, 100])
@pytest.mark.parametrize("solver", ["sinkhorn", "released"])
def test_similarity_of_candidates_agrees_with_single_calls(query, gallery, monkeypatch, pairs, solver):
    monkeypatch.setattr(matching, "_BLOCK_VALUES_CPU", 16 * pairs)
    own = torch.tensor([[4, 0, 2, 2], [1, 1, 3, 0], [2, 3, 4, 1]])
    found = candidate_similarity(*query, *gallery, own, Matching(solver=solver, reg=0.1))
    for q in range(3):
        sides = query[0][q : q + 1], query[1][q : q + 1], gallery[0][own[q]], gallery[1][own[q]]
        expected = structural_similarity(*sides, solver=solver, reg=0.1)
        torch.testing.assert_close(found[q : q + 1], expected, atol=1e-12, rtol=0)
    assert candidate_similarity(*query, *gallery, own[:, :0]).shape == (3, 0)
    assert candidate_similarity(query[0][:0], query[1][:0], *gallery, own[:0]).shape == (0, 4)


def test_candidates_beyond_the_gallery_are_refused(query, gallery):
    for own, message in (
        (torch.tensor([[5], [0], [1]]), "hold 0 to 5"),
        (torch.tensor([[-1], [0], [1]]), "hold -1 to 1"),
        (torch.tensor([[1], [0]]), r"\(2, 1\)"),
        (torch.zeros(3, 2), "int64"),
    ):
        with pytest.raises(ValueError, match=message):
            candidate_similarity(*query, *gallery, own)


def test_autocast_does_not_reach_the_plan(query, gallery):
    sides = [part.float() for part in (*query, *gallery)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = structural_similarity(*sides)
    assert torch.equal(found, structural_similarity(*sides))


@pytest.mark.gpu
@pytest.mark.parametrize("reg", [0.05, 0.01])
def test_results_on_a_device_agree_with_the_processor(make_images, reg):
    sides = *make_images(20, locations=16, dim=32, seed=1), *make_images(30, locations=16, dim=32, seed=2)
    for dtype, error in ((torch.float64, 2e-6), (torch.float32, 5e-6)):
        there = structural_similarity(*(part.to("cuda", dtype) for part in sides), reg=reg)
        torch.testing.assert_close(there.cpu().double(), structural_similarity(*sides, reg=reg), atol=error, rtol=0)


def test_own_candidates_agree_with_a_shared_gallery(query, gallery):
    own = torch.tensor([[4, 0], [1, 1], [2, 3]])
    found = Matching()(*query, gallery[0][own], gallery[1][own])
    whole = Matching()(*query, *gallery)
    expected = whole.similarity.gather(1, own)
    torch.testing.assert_close(found.similarity, expected, atol=1e-12, rtol=0)
    for name in ("correlation", "plan", "query_marginal", "gallery_marginal"):
        expected = torch.stack([getattr(whole, name)[q, own[q]] for q in range(3)])
        torch.testing.assert_close(getattr(found, name), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("measure", [structural_similarity, structural_distance])
def test_gradients_pass_through_the_measure_and_on_request_through_the_plan(query, gallery, measure):
    inputs = [part.clone().requires_grad_() for part in (query[0][:1], query[1][:1], gallery[0][:2], gallery[1][:2])]

    def through(*images):
        images = [F.normalize(part, dim=-1) for part in images]
        return measure(*images, reg=0.2, tolerance=0.0, plan_gradient=True)

    assert torch.autograd.gradcheck(through, inputs, eps=1e-7, atol=1e-5, rtol=1e-4)

    found = measure(*inputs)
    gradients = torch.autograd.grad(found.sum(), inputs, allow_unused=True, materialize_grads=True)
    plan = Matching()(*inputs).plan
    assert not plan.requires_grad
    correlation = torch.einsum("qrd,gsd->qgrs", inputs[0], inputs[2])
    ground = correlation if measure is structural_similarity else (2 - 2 * correlation).sqrt()
    expected = torch.autograd.grad((plan * ground).sum(), [inputs[0], inputs[2]])
    torch.testing.assert_close((gradients[0], gradients[2]), expected, atol=1e-10, rtol=0)
    assert not gradients[1].any()


@pytest.mark.parametrize("smoothing", [0.0, 1e-6])
def test_location_distance_of_equal_vectors_has_a_finite_gradient(smoothing):
    correlation = torch.tensor([1.0, 1 + 1e-7, 0.5, -1.0], requires_grad=True)
    distance = location_distance(correlation, smoothing)
    expected = torch.tensor([math.sqrt(smoothing)] * 2 + [1.0, 2.0])
    torch.testing.assert_close(distance, expected, atol=1e-6, rtol=0)
    distance.sum().backward()
    assert correlation.grad.isfinite().all()


@pytest.mark.parametrize("measure", [structural_similarity, structural_distance])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"marginal": "softmax"}, "marginal: unknown 'softmax'"),
        ({"solver": "newton"}, "solver: unknown 'newton'.*exact"),
        ({"reg": 0.0}, "reg=0.0"),
        ({"tolerance": -1.0}, "tolerance=-1.0"),
    ],
)
def test_wrong_options_are_refused(query, gallery, measure, options, message):
    with pytest.raises(ValueError, match=message):
        measure(*query, *gallery, **options)


def test_wrong_images_are_refused(query, gallery):
    with pytest.raises(ValueError, match="query_global"):
        structural_similarity(query[0], query[1][:2], *gallery)
    with pytest.raises(ValueError, match="gallery_global"):
        structural_similarity(*query, gallery[0], query[1])
    with pytest.raises(ValueError, match=r"must be \(G, R, D\)"):
        structural_similarity(*query, gallery[0][:3, None], gallery[1][:3, None])
    with pytest.raises(ValueError, match="cost holds NaN"):
        structural_similarity(query[0] * math.nan, query[1], *gallery)
    with pytest.raises(ValueError, match="ground: unknown 'manhattan'"):
        structural_distance(*query, *gallery, "manhattan")
