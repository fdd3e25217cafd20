"""Explanations are told in numbers small enough for a page, and these numbers are the explanation's."""

import json

import pytest
import torch

import lookalike
from lookalike.explanations.serialisation import (
    COUNTERPARTS,
    FULL,
    NODES,
    SIDE,
    as_data,
    counterparts,
    map_data,
    maps_of_nodes,
)
from own_pictures import opened


def images(seed=0, count=3):
    return torch.randn(count, 3, 24, 24, generator=torch.Generator().manual_seed(seed))


def explained(kind, method):
    network = opened(kind).network
    return network, lookalike.explain(network, images(0), images(1), method=method)


@pytest.mark.parametrize(("kind", "method"), [("embedder", "activation"), ("diml", "structure")])
def test_a_places_share_follows_from_its_cell_and_the_peak(kind, method):
    _, explanation = explained(kind, method)
    shown = as_data(explanation, 1)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["value"] == pytest.approx(float(explanation.value[1]), abs=1e-4)
    for told, whole in zip(shown["maps"], explanation.maps, strict=True):
        shares = torch.tensor(told["cells"]).double() / FULL * told["peak"]
        expected = (whole[1] / whole[1].sum()).flatten()
        assert float((shares - expected).abs().max()) <= 0.006 * float(expected.abs().max()) + 1e-3
    pairs = explanation.pairs[1] / explanation.explained[1]
    rows, columns = pairs.shape
    for side, values in (("query", pairs), ("match", pairs.T)):
        assert len(shown["places"][side]) == (rows if side == "query" else columns)
        for place, found in enumerate(shown["places"][side]):
            assert len(found) <= COUNTERPARTS
            for other, permille in found:
                assert permille / 1000 == pytest.approx(float(values[place, other]), abs=6e-4)


def test_counterparts_are_the_strongest_first_and_none_that_add_nothing():
    pairs = torch.tensor([[0.0, 0.2, 0.1], [0.0, 0.0, 0.7]])
    assert counterparts(pairs, 1.0) == [[[1, 200], [2, 100]], [[2, 700]]]
    assert counterparts(pairs, 0.0) == [[], []]


def test_fine_maps_are_pooled_and_empty_ones_stay_empty():
    told = map_data(torch.ones(30, 40), is_sum=True)
    assert told["grid"] == [SIDE, SIDE]
    assert set(told["cells"]) == {FULL}
    assert told["peak"] == pytest.approx(1 / SIDE**2, abs=1e-4)
    assert map_data(torch.zeros(2, 2)) == {"grid": [2, 2], "cells": [0, 0, 0, 0], "peak": None}
    assert map_data(torch.tensor([[2.0, -4.0]]))["cells"] == [50, -FULL]


def test_nodes_are_the_strongest_with_where_they_look():
    network, explanation = explained("avsl", "graph")
    both = torch.cat([images(0)[1:2], images(1)[1:2]])
    maps = maps_of_nodes(network, both)
    shown = as_data(explanation, 1, [(level[0], level[1]) for level in maps])["nodes"]
    added = explanation.nodes.sensitivity[1] * explanation.nodes.difference[1]
    strongest = added.flatten().topk(NODES).values / added.sum()
    assert [node["share"] for node in shown] == pytest.approx(strongest.tolist(), abs=1e-4)
    for node in shown:
        level, number = node["level"] - 1, node["node"]
        assert node["share"] == pytest.approx(float(added[level, number] / added.sum()), abs=1e-4)
        assert node["reliability"] == pytest.approx(float(explanation.nodes.reliability[1, level, number]), abs=1e-4)
        assert bool(node["below"]) <= (level > 0)
        assert node["maps"] == [map_data(maps[level][0, number]), map_data(maps[level][1, number])]


@pytest.mark.parametrize(
    ("kind", "method"), [("embedder", None), ("diml", None), ("avsl", None), ("embedder", "attention")]
)
def test_every_explanation_of_a_triplet_is_json_whose_parts_agree(kind, method):
    network = opened(kind).network
    explanation = lookalike.explain(network, images(0), images(1), images(2), method=method)
    data = json.loads(json.dumps(as_data(explanation, 2), allow_nan=False))
    assert len(data["maps"]) == 3
    assert data["method"] == explanation.method
    assert data["value"] == pytest.approx(float(explanation.value[2]), abs=1e-6)
    assert ("nodes" in data, "places" in data) == (explanation.nodes is not None, explanation.pairs is not None)
    if method is None:
        assert data["explained"] == pytest.approx(data["value"], rel=1e-4)
