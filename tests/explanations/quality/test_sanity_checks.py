"""Randomised partners and weights change a map that depends on them, and never the model that was given.

A planted box is where the pair differs: found by the true difference, by chance as often as it is large.
"""

import copy

import pytest
import torch
from scipy.stats import spearmanr

import lookalike
from draws import generator
from lookalike.explanations.quality.cells import pooled
from lookalike.explanations.quality.sanity_checks import (
    cascade,
    draw_boxes,
    map_correlation,
    planted,
    planted_hits,
    planted_rank,
    weight_randomisation,
)
from trainings import CROP, batch, learner


def trained(name):
    learning = learner(name)
    learning(*batch())
    return learning.model.eval()


def changed(before, model):
    """Names of the tensors that are not what they were."""
    return {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}


def test_maps_are_correlated_over_the_cells_of_one_grid():
    first, second = torch.randn(3, 7, 7, generator=generator()), torch.randn(3, 24, 24, generator=generator(1))
    found = map_correlation(first, second)
    for row in range(3):
        cells = [pooled(each[row : row + 1]).flatten().tolist() for each in (first, second)]
        assert float(found[row]) == pytest.approx(spearmanr(*cells).statistic, abs=1e-9)


def test_a_map_that_ignores_its_partner_is_found_out():
    model = trained("embedder")
    query, gallery, stranger = torch.randn(3, 6, 3, CROP, CROP, generator=generator())
    agnostic, explaining = (
        map_correlation(
            *(lookalike.explain(model, query, other, method=method).maps[0] for other in (gallery, stranger))
        )
        for method in ("class_agnostic", "activation")
    )
    torch.testing.assert_close(agnostic, torch.ones(6).double())
    assert float(explaining.mean()) < 1 - 1e-4  # an untrained model sees little of its partner


def test_unrelated_maps_are_not_correlated_on_average():
    found = map_correlation(*torch.randn(2, 500, 14, 14, generator=generator()))
    assert abs(float(found.mean())) < 4 * float(found.std() / 500**0.5)


@pytest.mark.parametrize("name", ["embedder", "diml", "avsl"])
def test_the_model_stays_as_it_was_and_its_copies_end_without_a_trained_layer(name):
    model = trained(name)
    before, chance = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    copies = list(cascade(model, generator(), 3))
    assert changed(before, model) == set()
    assert torch.equal(torch.get_rng_state(), chance)
    assert not any(each.training for each in copies)
    touched = [changed(before, each) for each in copies]
    assert touched[0] < touched[1] < touched[2]
    varied = {name for name, each in before.items() if each.is_floating_point() and len(each.unique()) > 1}
    assert touched[2] == varied
    for name, tensor in copies[2].state_dict().items():  # the same numbers in other places
        assert torch.equal(tensor.flatten().sort().values, before[name].flatten().sort().values)


def test_the_cascade_begins_at_the_top():
    model = trained("embedder")
    before = copy.deepcopy(model.state_dict())
    layers = 1 + 5 * 2  # the head; five convolutions with their norms
    first, *_, last = (changed(before, each) for each in cascade(model, generator(), layers))
    assert first == {"head.weight", "head.bias"}
    assert any(name.startswith("trunk") for name in last)
    graph = trained("avsl")
    before = copy.deepcopy(graph.state_dict())
    top = changed(before, next(cascade(graph, generator(), 8)))
    assert "edge_states" in top
    assert not any(name.startswith("trunk") for name in top)


def test_random_weights_follow_their_seed():
    model = trained("embedder")
    images = torch.randn(2, 3, CROP, CROP, generator=generator())
    with torch.no_grad():
        first, again, other = (next(cascade(model, generator(seed), 1))(images) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_maps_that_do_not_read_the_weights_stay_and_others_do_not():
    model = trained("embedder")
    pair = torch.randn(2, 5, 3, CROP, CROP, generator=generator())
    edges = weight_randomisation(lambda _: pair[0, :, 0], model, generator())
    torch.testing.assert_close(edges, torch.ones(4, 5).double())
    found = weight_randomisation(
        lambda each: lookalike.explain(each, *pair, method="activation").maps[0], model, generator()
    )
    assert found.shape == (4, 5)
    assert float(found[-1].mean()) < 0.9


def test_more_steps_than_layers_are_refused():
    with pytest.raises(ValueError, match=r"steps=12 is outside \[1, 11\], the number of layers with weights"):
        next(cascade(trained("embedder"), generator(), 12))
    with pytest.raises(ValueError, match="steps=0 is outside"):
        next(cascade(trained("embedder"), generator(), 0))


def test_boxes_are_squares_of_cells_at_all_places():
    boxes = draw_boxes(2000, generator(), side=7, box=4)
    rows, columns = boxes.any(dim=2), boxes.any(dim=1)
    assert (rows.sum(dim=1) == 4).all() and (columns.sum(dim=1) == 4).all()
    assert (boxes.sum(dim=(1, 2)) == 16).all()
    places = torch.stack([rows.int().argmax(dim=1), columns.int().argmax(dim=1)], dim=1)
    found, counts = places.unique(dim=0, return_counts=True)
    assert found.amin(dim=0).tolist() == [0, 0] and found.amax(dim=0).tolist() == [3, 3]
    assert len(found) == 16
    assert (abs(counts - 125) < 4 * (2000 * 15 / 256) ** 0.5).all()
    assert torch.equal(boxes, draw_boxes(2000, generator(), side=7, box=4))


def test_pictures_are_equal_but_for_the_box():
    images, donors = torch.randn(2, 5, 3, 28, 28, generator=generator())
    boxes = draw_boxes(5, generator())
    found = planted(images, donors, boxes)
    for row in range(5):
        for y in range(28):
            for x in range(28):
                source = donors if boxes[row, y // 2, x // 2] else images
                assert torch.equal(found[row, :, y, x], source[row, :, y, x])


def test_the_true_difference_hits_every_time_and_its_opposite_never():
    images, donors = torch.randn(2, 20, 3, 28, 28, generator=generator())
    boxes = draw_boxes(20, generator())
    difference = pooled((planted(images, donors, boxes) - images).abs().sum(dim=1))
    assert planted_hits(difference, boxes).tolist() == [1] * 20
    assert planted_hits(-difference, boxes).tolist() == [0] * 20


@pytest.mark.parametrize("levels", [3, 10**6])
def test_a_random_map_hits_as_often_as_the_box_is_large(levels):
    maps = torch.randint(0, levels, (4000, 14, 14), generator=generator()).float()
    hits = planted_hits(maps, draw_boxes(4000, generator(1)))
    chance = 16 / 196
    error = float(hits.std() / 4000**0.5)
    assert 0 < error < 1.1 * (chance * (1 - chance) / 4000) ** 0.5
    assert abs(float(hits.mean()) - chance) < 4 * error


def test_a_map_that_says_nothing_hits_by_the_area_of_the_box():
    for side, box in ((14, 4), (7, 2)):
        boxes = draw_boxes(3, generator(), side, box)
        assert planted_hits(torch.ones(3, side, side), boxes).tolist() == pytest.approx([4 / 49] * 3)


def test_the_rank_counts_pairs_of_cells_in_and_outside_of_the_box():
    maps = torch.randint(0, 5, (30, 6, 6), generator=generator()).float()
    boxes = draw_boxes(30, generator(1), side=6, box=2)
    for seen, box, rank in zip(maps, boxes, planted_rank(maps, boxes), strict=True):
        pairs = [(inner > outer) + 0.5 * (inner == outer) for inner in seen[box] for outer in seen[~box]]
        assert float(rank) == pytest.approx(float(sum(pairs)) / len(pairs))


def test_the_true_difference_has_the_first_rank_its_opposite_the_last_and_chance_is_half():
    images, donors = torch.randn(2, 20, 3, 28, 28, generator=generator())
    boxes = draw_boxes(20, generator())
    difference = pooled((planted(images, donors, boxes) - images).abs().sum(dim=1))
    assert planted_rank(difference, boxes).tolist() == [1] * 20
    assert planted_rank(-difference, boxes).tolist() == [0] * 20
    assert planted_rank(torch.ones(20, 14, 14), boxes).tolist() == [0.5] * 20
    ranks = planted_rank(torch.rand(2000, 14, 14, generator=generator()), draw_boxes(2000, generator(1)))
    assert abs(float(ranks.mean()) - 0.5) < 4 * float(ranks.std()) / 2000**0.5


def test_a_map_that_is_cut_off_at_zero_is_ranked_by_all_its_cells():
    boxes = draw_boxes(50, generator())
    alike = torch.rand(50, 14, 14, generator=generator()).masked_fill(boxes, 0)  # what is planted is not alike
    alike = alike.masked_fill(torch.rand(50, 14, 14, generator=generator()) < 0.5, 0)  # nor is much else
    assert (planted_hits(-alike, boxes) < 0.25).all()
    assert (planted_rank(-alike, boxes) > 0.7).all()


def test_a_monotone_change_of_a_map_changes_no_rank_and_no_hit():
    maps, boxes = torch.randn(50, 14, 14, generator=generator()), draw_boxes(50, generator(), box=7)
    found = planted_hits(maps, boxes)
    assert torch.equal(planted_hits(maps.exp(), boxes), found)
    assert 0 < float(found.mean()) < 1
    assert torch.equal(planted_rank(maps.exp(), boxes), planted_rank(maps, boxes))


def test_what_does_not_fit_is_refused():
    images = torch.zeros(2, 3, 28, 28)
    for box in (0, 14):
        with pytest.raises(ValueError, match=rf"box={box} is outside \[1, 13\]"):
            draw_boxes(1, generator(), box=box)
    with pytest.raises(ValueError, match=r"need donors of their shape and as many boxes, not .* and \(3, 14, 14\)"):
        planted(images, images, draw_boxes(3, generator()))
    with pytest.raises(ValueError, match=r"maps have shape \(2, 7, 7\), they must have that of boxes, \(2, 14, 14\)"):
        planted_hits(torch.zeros(2, 7, 7), draw_boxes(2, generator()))
    with pytest.raises(ValueError, match=r"maps have shape \(2, 7, 7\), they must have that of boxes"):
        planted_rank(torch.zeros(2, 7, 7), draw_boxes(2, generator()))
