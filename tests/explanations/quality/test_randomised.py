"""Randomised partners and weights change a map that depends on them, and never the model that was given."""

import copy

import pytest
import torch
from scipy.stats import spearmanr

import lookalike
from draws import generator
from lookalike.explanations.quality.pooled import pooled
from lookalike.explanations.quality.randomised import cascade, map_correlation, weight_randomisation
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
