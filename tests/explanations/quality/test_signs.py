"""Maps of similarities and of distances are turned the same way."""

import pytest
import torch

import lookalike
from lookalike.explanations.explanation import Explanation
from lookalike.explanations.quality.signs import of_difference, of_likeness
from trainings import CROP, batch, learner


def found(measure):
    maps = tuple(torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).unbind(0))
    return Explanation("any", measure, torch.zeros(3), maps)


@pytest.mark.parametrize(("measure", "sign"), [("cosine", 1), ("structural similarity", 1), ("distance", -1)])
@pytest.mark.parametrize("role", [0, 1])
def test_the_map_of_a_distance_is_turned(measure, sign, role):
    each = found(measure)
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
        of_likeness(found("angle"))
    with pytest.raises(ValueError, match="role=2 must be 0, the query, or 1"):
        of_likeness(found("cosine"), 2)
