"""All measures of a method on the same triplets, and what controls must reach.

Maps of similarities and of distances are turned the same way.
"""

from dataclasses import replace

import pytest
import torch

import lookalike
from lookalike.explanations.explanation import Explanation
from lookalike.explanations.quality.deletion import blurred, margin_between, margin_deletion
from lookalike.explanations.quality.measures import (
    CONTROLS,
    Triplets,
    explainer,
    measured,
    of_difference,
    of_likeness,
    scores_of,
)
from lookalike.explanations.quality.parts import Parts
from trainings import CROP, batch, learner

COUNT, SIDE = 6, 6
OWN = {"embedder": "activation", "diml": "structure", "avsl": "graph"}


@pytest.fixture(scope="module")
def triplets():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, COUNT, 3, CROP, CROP, generator=generator)
    images = images + 0.5 * torch.randn(1, COUNT, 3, 1, 1, generator=generator)

    def parts():
        points = torch.rand(COUNT, 8, 2, generator=generator) * CROP
        return Parts(points, torch.rand(COUNT, 8, generator=generator) < 0.9, (CROP, CROP))

    objects = torch.zeros(COUNT, CROP, CROP, dtype=torch.bool)
    objects[:, 4:16, 4:16] = True
    reach = {alpha: torch.full((COUNT,), 12 * alpha) for alpha in (0.1, 0.2)}
    return Triplets(images, (parts(), parts(), parts()), objects, reach)


def model_of(name):
    torch.manual_seed(0)
    learning = learner(name)
    learning(*batch())
    return learning.model.eval()


def found(name, method, triplets):
    model = model_of(name)
    return measured(explainer(method, seed=0, side=SIDE), model, scores_of(model, method), triplets, seed=0, side=SIDE)


@pytest.mark.parametrize(("name", "method"), [*OWN.items(), ("embedder", "attention"), ("embedder", "structure")])
def test_every_measure_has_a_number_per_triplet(triplets, name, method):
    values = found(name, method, triplets)
    assert all(each.shape == (COUNT,) and each.dtype == torch.float64 for each in values.values())
    for key in (
        "deletion_blur",
        "deletion_mean",
        "inside",
        "partner",
        "weights",
        "planted",
        "planted_hit",
        "milliseconds",
    ):
        defined = values[key].isfinite()  # a map of attention may be empty, and then says nothing
        assert defined.any() if method == "attention" else defined.all(), key
    assert ("pck@0.1" in values) == (method in ("activation", "structure"))
    if method in OWN.values():
        assert float(values["gap"].max()) < 1e-5
    for alpha in (0.1, 0.2):
        if f"pck@{alpha}" in values:
            assert bool((values[f"pck@{alpha}"] <= values[f"ceiling@{alpha}"] + 1e-9).nan_to_num(1).all())


@pytest.mark.parametrize(("name", "method"), OWN.items())
def test_the_margin_is_that_of_what_the_method_explains(triplets, name, method):
    model = model_of(name)
    scores = scores_of(model, method)
    anchor, positive, negative, _ = triplets.images
    with torch.no_grad():
        margin = margin_between(scores.represent, scores.similarity, positive, negative)(anchor)
    explain = explainer(method, seed=0)
    near, far = (explain(model, anchor, other, None).value for other in (positive, negative))
    sign = -1 if method == "graph" else 1
    torch.testing.assert_close(margin, sign * (near - far).double(), atol=1e-5, rtol=1e-3)


def test_deletion_takes_cells_in_the_order_of_the_triplets_map(triplets):
    model = model_of("embedder")
    values = found("embedder", "activation", triplets)
    anchor, positive, negative, _ = triplets.images
    scores = scores_of(model, "activation")
    maps = explainer("activation", seed=0)(model, anchor, positive, negative).maps[0]
    deletion = margin_deletion(
        margin_between(scores.represent, scores.similarity, positive, negative),
        anchor,
        blurred(anchor),
        maps,
        generator=torch.Generator().manual_seed(2),  # cells of one place of the map are equal
        side=SIDE,
    )
    torch.testing.assert_close(values["deletion_blur"], deletion.area)
    torch.testing.assert_close(values["whole_blur"], deletion.whole)


@pytest.mark.parametrize("method", CONTROLS)
def test_controls_know_neither_partner_nor_weights(triplets, method):
    values = found("embedder", method, triplets)
    if method == "random":
        assert float(values["partner"].abs().mean()) < 0.5 > float(values["weights"].abs().mean())
    else:
        torch.testing.assert_close(values["partner"], torch.ones(COUNT, dtype=torch.float64))
        torch.testing.assert_close(values["weights"], torch.ones(COUNT, dtype=torch.float64))
    assert "gap" not in values


def test_the_centres_mass_is_that_of_the_centre(triplets):
    torch.testing.assert_close(
        found("embedder", "centre", triplets)["inside"], torch.zeros(COUNT, dtype=torch.float64), atol=1e-6, rtol=0
    )


def test_a_map_without_the_partner_does_not_change_with_it_and_draws_are_shared(triplets):
    values = found("embedder", "class_agnostic", triplets)
    torch.testing.assert_close(values["partner"], torch.ones(COUNT, dtype=torch.float64))
    again = found("embedder", "class_agnostic", triplets)
    for name in values.keys() - {"milliseconds"}:
        torch.testing.assert_close(values[name], again[name], equal_nan=True)


def test_what_is_not_known_of_pictures_is_not_measured(triplets):
    model = model_of("embedder")

    def names(**changes):
        arguments = (explainer("activation", seed=0), model, scores_of(model, "activation"))
        found = measured(*arguments, replace(triplets, **changes), seed=0, side=SIDE, steps=2, substitutes=["mean"])
        return set(found)

    whole = names()
    assert {"deletion_mean", "whole_mean"} <= whole and "deletion_blur" not in whole
    assert whole - names(parts=None) == {name for name in whole if "@" in name} | {"agreement"}
    assert whole - names(reach=None) == {name for name in whole if "@" in name}
    assert whole - names(objects=None) == {"inside"}


def test_an_unknown_substitute_is_refused(triplets):
    model = model_of("embedder")
    arguments = (explainer("activation", seed=0), model, scores_of(model, "activation"), triplets)
    with pytest.raises(ValueError, match="substitute: unknown 'grey'"):
        measured(*arguments, seed=0, side=SIDE, substitutes=["grey"])


def found_signs(measure):
    maps = tuple(torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).unbind(0))
    return Explanation("any", measure, torch.zeros(3), maps)


@pytest.mark.parametrize(("measure", "sign"), [("cosine", 1), ("structural similarity", 1), ("distance", -1)])
@pytest.mark.parametrize("role", [0, 1])
def test_the_map_of_a_distance_is_turned(measure, sign, role):
    each = found_signs(measure)
    assert torch.equal(of_likeness(each, role), sign * each.maps[role])
    assert torch.equal(of_difference(each, role), -sign * each.maps[role])


@pytest.mark.parametrize("name", ["embedder", "diml", "avsl"])
def test_every_model_explains_a_measure_whose_sign_is_known(name):
    learning = learner(name)
    learning(*batch())
    model = learning.model.eval()
    images = torch.randn(2, 3, CROP, CROP, generator=torch.Generator().manual_seed(1))
    for method in (None, *(["attention", "gradient"] if name != "avsl" else [])):
        of_likeness(lookalike.explain(model, *images, method=method))


def test_an_unknown_measure_or_role_is_refused():
    with pytest.raises(ValueError, match=r"measure: unknown 'angle'.* Known: cosine, distance, structural similarity"):
        of_likeness(found_signs("angle"))
    with pytest.raises(ValueError, match="role=2 must be 0, the query, or 1"):
        of_likeness(found_signs("cosine"), 2)
