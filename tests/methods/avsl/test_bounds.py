"""Bounds of weights and distances hold for every pair they are about, rounding included."""

import pytest
import torch

from graphs import made_graph
from lookalike.methods.avsl.bounds import block_bounds, exact_distance, extremes, flat, pair_bounds, weight_intervals
from lookalike.methods.avsl.graph import Images, block_distance, graph_images, graph_steps
from lookalike.methods.avsl.similarity import sensitivities

ALPHAS = [0.0, 1.0, 30.0, 1e4]


def images(side):
    return graph_images("made", *side, False)


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_interval_of_a_weight_holds_it_for_every_pair(alpha, negative):
    query, gallery, model = made_graph(alpha, seed=3, negative_edges=negative)
    steps = graph_steps(images(query), *model.values())
    intervals = weight_intervals(extremes(images(query)), extremes(images(gallery)), steps, 10.0)
    weights = torch.cat(sensitivities(*query, *gallery, **model), dim=-1)
    assert ((weights - intervals.middle).abs() <= intervals.half).all()
    if alpha == 0:
        assert (intervals.half <= 1e-9 * intervals.middle.abs().max()).all()  # no pair differs from another


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_bounds_of_a_block_and_of_single_pairs_hold_the_distance(alpha):
    query, gallery, model = made_graph(alpha, seed=4, nodes=64, count=40)
    left, right = images(query), images(gallery)
    steps = graph_steps(left, *model.values())
    distance = block_distance(left, right, steps, 10.0)
    weights = weight_intervals(extremes(left), extremes(right), steps, 10.0)
    middle, of_query, of_item = block_bounds(flat(left), flat(right), weights)
    error = of_query[:, None] + of_item
    assert ((distance - middle).abs() <= error).all()
    row, column = torch.ones_like(middle).nonzero(as_tuple=True)
    pairs = [
        Images([units[at] for units in side.units], [statistics[at] for statistics in side.statistics])
        for side, at in ((left, row), (right, column))
    ]
    narrow, off = pair_bounds(*(flat(each).units for each in pairs), weights)
    assert ((distance.flatten() - narrow).abs() <= off).all()
    assert (off <= error.flatten()).all()
    torch.testing.assert_close(exact_distance(*pairs, steps, 10.0), distance.flatten(), rtol=1e-12, atol=1e-14)


def test_similar_statistics_have_narrow_bounds():
    query, gallery, model = made_graph(30.0, seed=5)
    steps = graph_steps(images(query), *model.values())
    wide = weight_intervals(extremes(images(query)), extremes(images(gallery)), steps, 10.0)
    one = Images([u[:1] for u in images(query).units], [s[:1] for s in images(query).statistics])
    narrow = weight_intervals(extremes(one), extremes(one), steps, 10.0)
    assert narrow.half.sum() < 1e-6 * wide.half.sum()
