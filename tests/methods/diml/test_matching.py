"""Weights of locations against loops over pairs."""

from __future__ import annotations

import pytest
import torch

from lookalike.methods.diml.similarity import marginals


def marginals_by_loops(query_regions, query_global, gallery_regions, gallery_global):
    """Notes, section 2: relu(cosine with the other image's global vector), scaled to one, uniform if all are zero."""
    count, locations, _ = query_regions.shape
    query = torch.zeros(count, len(gallery_regions), locations, dtype=query_regions.dtype)
    gallery = torch.zeros(count, len(gallery_regions), gallery_regions.shape[1], dtype=query_regions.dtype)
    for q in range(count):
        for g in range(len(gallery_regions)):
            for weights, regions, other in (
                (query[q, g], query_regions[q], gallery_global[g]),
                (gallery[q, g], gallery_regions[g], query_global[q]),
            ):
                for place, region in enumerate(regions):
                    weights[place] = max(0.0, float(region @ other))
                weights[:] = weights / weights.sum() if weights.sum() > 0 else 1 / len(weights)
    return query, gallery


def test_cross_correlation_agrees_with_loops(query, gallery):
    found, expected = marginals(*query, *gallery), marginals_by_loops(*query, *gallery)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == (3, 5, 4)
        torch.testing.assert_close(one, other, atol=1e-14, rtol=0)
    assert (found[0] == 0).any()  # the data cover negative cosines


def test_own_candidates_agree_with_a_shared_gallery(query, gallery):
    own = torch.tensor([[4, 0], [1, 1], [2, 3]])
    found = marginals(*query, gallery[0][own], gallery[1][own])
    for one, whole in zip(found, marginals(*query, *gallery), strict=True):
        torch.testing.assert_close(one, torch.stack([whole[i, own[i]] for i in range(3)]), atol=1e-14, rtol=0)


@pytest.mark.parametrize("kind", ["cross_correlation", "uniform", "swapped"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_marginals_sum_to_one_and_keep_the_dtype(query, gallery, kind, dtype):
    sides = [part.to(dtype) for part in (*query, *gallery)]
    for side in marginals(*sides, kind):
        assert side.dtype == dtype
        assert side.min() >= 0
        torch.testing.assert_close(side.sum(-1), torch.ones(3, 5, dtype=dtype), atol=1e-6, rtol=0)


def test_uniform_weights_are_one_over_the_locations(query, gallery):
    fewer = gallery[0][:, :3]
    left, right = marginals(*query, fewer, gallery[1], "uniform")
    assert (left == 1 / 4).all()
    assert left.shape == (3, 5, 4)
    assert (right == 1 / 3).all()
    assert right.shape == (3, 5, 3)


def test_swapped_weights_are_those_of_the_other_image_at_the_same_place(query, gallery):
    left, right = marginals(*query, *gallery)
    swapped = marginals(*query, *gallery, "swapped")
    assert torch.equal(swapped[0], right)
    assert torch.equal(swapped[1], left)


def test_exchanging_the_sides_exchanges_the_marginals(query, gallery):
    left, right = marginals(*query, *gallery)
    other_right, other_left = marginals(*gallery, *query)
    torch.testing.assert_close(left, other_left.transpose(0, 1), atol=1e-14, rtol=0)
    torch.testing.assert_close(right, other_right.transpose(0, 1), atol=1e-14, rtol=0)


@pytest.mark.parametrize("factor", [-1.0, 0.0, -1e-30])
def test_an_image_that_resembles_nothing_gets_uniform_weights(query, gallery, factor):
    opposite = factor * gallery[1][0].expand(3, 4, 6)  # every location opposite to that image, or without direction
    left, _ = marginals(opposite, query[1], *gallery)
    assert (left[:, 0] == 0.25).all()
    assert left.isfinite().all()


def test_gradients_reach_all_vectors(query, gallery):
    inputs = [part.clone().requires_grad_() for part in (query[0][:1], query[1][:1], gallery[0][:2], gallery[1][:2])]
    assert torch.autograd.gradcheck(marginals, inputs)


def test_gradients_stay_finite_where_weights_are_uniform(gallery):
    regions = (-gallery[1][:1]).expand(1, 4, 6).clone().requires_grad_()
    vector = torch.ones(1, 6, dtype=torch.float64) / 6**0.5
    marginals(regions, vector, *gallery)[0].square().sum().backward()
    assert regions.grad.isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_global": torch.zeros(2, 6)}, "query_global"),
        ({"gallery_global": torch.zeros(5, 5)}, "gallery_global"),
        ({"gallery_regions": torch.zeros(5, 4, 7)}, r"\(5, 4, 7\)"),
        ({"query_regions": torch.zeros(3, 6)}, r"\(3, 6\)"),
        ({"query_regions": torch.zeros(3, 0, 6)}, r"\(3, 0, 6\)"),
        ({"gallery_regions": torch.zeros(2, 5, 4, 6), "gallery_global": torch.zeros(2, 5, 6)}, r"\(2, 5, 4, 6\)"),
        ({"kind": "softmax"}, "kind: unknown 'softmax'.*uniform"),
        ({"gallery_regions": torch.zeros(5, 3, 6), "kind": "swapped"}, "4 and 3"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    arguments = {
        "query_regions": torch.zeros(3, 4, 6),
        "query_global": torch.zeros(3, 6),
        "gallery_regions": torch.zeros(5, 4, 6),
        "gallery_global": torch.zeros(5, 6),
    }
    with pytest.raises(ValueError, match=message):
        marginals(**{**arguments, **change})
