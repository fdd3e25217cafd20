"""Layers of settings lie over each other, and each value is known by the layer that states it."""

from lookalike.workflow.settings.layers import Layer, Stated, flat, laid, merge, stated

LAYERS = [
    Layer("paper", {"loss": {"name": "margin", "margin": 0.2, "scale": 1}, "batch": 8, "rates": [1, 2]}),
    Layer("scale", {"batch": 4, "rates": [3]}),
    Layer("point", {"loss": {"margin": 0.3}}),
]


def test_a_loss_does_not_inherit_the_values_of_another_one():
    base = {"loss": {"name": "margin", "margin": 0.3}}
    assert merge(base, {"loss": {"name": "npair"}}) == {"loss": {"name": "npair"}}
    assert merge(base, {"loss": {"margin": 0.2}}) == {"loss": {"name": "margin", "margin": 0.2}}


def test_each_value_has_the_origin_of_the_last_layer_that_states_it():
    assert laid(LAYERS) == {"loss": {"name": "margin", "margin": 0.3, "scale": 1}, "batch": 4, "rates": [3]}
    origins = {key: value.origin for key, value in flat(stated(LAYERS))}
    assert origins == {
        "loss.name": "paper",
        "loss.margin": "point",
        "loss.scale": "paper",
        "batch": "scale",
        "rates": "scale",
    }


def test_another_name_drops_the_values_of_the_one_before_with_their_origins():
    found = dict(flat(stated([*LAYERS, Layer("other", {"loss": {"name": "npair"}})])))
    assert {key: value for key, value in found.items() if key.startswith("loss")} == {
        "loss.name": Stated("npair", "other")
    }


def test_equal_values_are_equal_whoever_states_them():
    assert Stated(1, "here") == Stated(1, "there") != Stated(2, "here")
