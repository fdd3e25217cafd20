"""One call explains pairs and triplets of every kind of model."""

import pytest
import torch
from torch import nn

import lookalike
from lookalike.explanations.choice import default_method, methods_of
from lookalike.explanations.quality.measures import scores_of
from trainings import CROP, batch, learner

MODELS = {
    "embedder": "activation",
    "projected": "activation",
    "diml": "structure",
    "avsl": "graph",
    "sam": "activation",
}
MODELS |= {"sam_parts": "attention", "avsl_margin": "graph"}
EVERY = [(name, method) for name in ("embedder", "diml") for method in methods_of(learner("embedder").model)]


def trained(name, device="cpu"):
    learning = learner(name).to(device)
    learning(*(part.to(device) for part in batch()))  # from which AVSL takes its edges
    return learning.model.eval()


def images(seed=0, count=4, device="cpu"):
    return torch.randn(3, count, 3, CROP, CROP, generator=torch.Generator().manual_seed(seed)).to(device)


@pytest.mark.parametrize(("name", "method"), MODELS.items())
def test_every_model_has_a_method_of_its_own(name, method):
    model = trained(name)
    assert default_method(model) == method
    query, gallery, negative = images()
    for given in ((query, gallery), (query, gallery, negative)):
        found = lookalike.explain(model, *given)
        assert found.method == method
        assert found.value.shape == (4,)
        assert len(found.maps) == len(given)
        assert all(each.ndim == 3 and len(each) == 4 and each.isfinite().all() for each in found.maps)


@pytest.mark.parametrize(("name", "method"), [*EVERY, ("avsl", "graph")])
def test_a_pair_is_explained_as_it_is_among_others(name, method, device):
    model = trained(name, device)
    query, gallery, negative = images(device=device)
    together = lookalike.explain(model, query, gallery, negative, method=method)
    alone = lookalike.explain(model, query[2], gallery[2], negative[2], method=method)
    for one, many in zip(alone.maps, together.maps, strict=True):
        torch.testing.assert_close(one[0], many[2], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(alone.value[0], together.value[2], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "method"),
    [("embedder", "activation"), ("embedder", "structure"), ("diml", "structure"), ("avsl", "graph")],
)
def test_evidence_sums_to_what_is_explained(name, method, device):
    query, gallery, _ = images(device=device)
    found = lookalike.explain(trained(name, device), query, gallery, method=method)
    assert float(found.gap.max()) < 1e-5
    if found.pairs is not None:
        torch.testing.assert_close(found.pairs.sum(dim=(1, 2)), found.value)
        for each in found.maps:
            torch.testing.assert_close(each.sum(dim=(1, 2)), found.value)


@pytest.mark.parametrize("method", ["attention", "gradient", "class_agnostic"])
def test_maps_without_a_sum_say_so_and_are_not_negative(method):
    found = lookalike.explain(trained("embedder"), *images(), method=method)
    assert found.explained is None and found.gap is None
    assert all((each >= 0).all() for each in found.maps)


def test_the_cosine_is_that_of_the_embeddings():
    model = trained("embedder")
    query, gallery, _ = images()
    with torch.no_grad():
        expected = torch.cosine_similarity(model(query), model(gallery))
    for method in ("activation", "attention", "gradient", "class_agnostic"):
        found = lookalike.explain(model, query, gallery, method=method)
        torch.testing.assert_close(found.value.float(), expected, atol=1e-6, rtol=1e-5)
        assert found.measure == "cosine"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            (torch.zeros(3, 8, 8), torch.zeros(3, 8, 9)),
            r"gallery has shape \(3, 8, 9\), it must be that of the query, \(3, 8, 8\)",
        ),
        ((torch.zeros(1, 8, 8), torch.zeros(1, 8, 8)), r"query has shape \(1, 8, 8\) .* it must be \(3, H, W\)"),
        ((torch.zeros(3, 8, 8), torch.zeros(3, 8, 8, dtype=torch.uint8)), r"gallery has .*uint8, it must be .* float"),
    ],
)
def test_images_of_another_shape_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        lookalike.explain(trained("embedder"), *given)


def test_models_and_methods_that_do_not_go_together_are_refused():
    query, gallery, _ = images()
    with pytest.raises(ValueError, match="method: unknown 'grad', did you mean 'gradient'"):
        lookalike.explain(trained("embedder"), query, gallery, method="grad")
    with pytest.raises(ValueError, match=r"method: unknown 'activation'.*graph"):
        lookalike.explain(trained("avsl"), query, gallery, method="activation")
    with pytest.raises(
        ValueError, match=r"a model of type Flatten cannot be explained as it is; known are .* Say by `layer`"
    ):
        lookalike.explain(nn.Flatten().eval(), query, gallery)
    with pytest.raises(ValueError, match="training mode"):
        lookalike.explain(learner("embedder").model, query, gallery)
    with pytest.raises(ValueError, match="needs pooling average, max, average_max and a linear head, not 'stripes'"):
        lookalike.explain(trained("sam_parts"), query, gallery, method="activation")


def test_structure_explains_any_network_that_was_given_locations():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    model = lookalike.DIML(network, "0", side=3).eval()
    query, gallery, _ = images()
    found = lookalike.explain(model, query, gallery, method="structure")
    assert torch.allclose(found.explained, found.value, atol=1e-6)
    assert methods_of(model).keys() == {"structure"}


@pytest.mark.parametrize("name", ["embedder", "avsl"])
def test_a_control_is_measured_by_what_the_model_ranks_by(name):
    model, own = trained(name), scores_of(trained(name), MODELS[name])
    control = scores_of(model, "random")
    query, gallery, _ = images()
    values = [each.similarity(each.represent(query), each.represent(gallery)) for each in (own, control)]
    assert torch.equal(*values)
