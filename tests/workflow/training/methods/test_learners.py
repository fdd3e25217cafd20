"""What a batch teaches: which parameter has which rate, and what of a method takes part when.

DIML as recipes train it.
"""

import pytest
import torch
from torch import nn

from lookalike import methods as described
from lookalike.base.tensors import unit
from lookalike.methods.contextual.loss import contextual_loss, similarity_regulariser
from lookalike.methods.contextual.products import cosine_similarity
from lookalike.methods.diml.head import mean_vector
from lookalike.workflow.settings.recipes import Optimiser
from lookalike.workflow.training.methods.learners import DIMLLearner
from lookalike.workflow.training.optimiser import build_optimiser
from trainings import METHODS, SETTINGS, batch, learner, section

# Modules and parameters of each part, written down by hand.
PARTS = {
    "embedder": {"trunk": ["model.trunk"], "head": ["model.head"], "boundaries": ["loss.boundaries"]},
    "proxies": {"trunk": ["model.trunk"], "head": ["model.head"], "proxies": ["loss"]},
    "projected": {
        "trunk": ["model.trunk"],
        "head": ["model.head"],
        "projector": ["projector"],
        "boundaries": ["loss.loss.boundaries"],
    },
    "avsl": {
        "trunk": ["model.backbone"],
        "head": ["model.heads"],
        "proxies": ["model.alpha", "model.beta", "loss.terms.proxies"],
    },
    "avsl_margin": {
        "trunk": ["model.backbone"],
        "head": ["model.heads"],
        "proxies": ["model.alpha", "model.beta", "model.learned_statistics"],
        "boundaries": ["loss.terms.boundaries"],
    },
    "diml": {
        "trunk": ["model.embedder.trunk"],
        "head": ["model.embedder.head"],
        "boundaries": ["loss.term.boundaries"],
    },
    "sam": {"trunk": ["model.trunk"], "head": ["model.head"]},
    "sam_parts": {"trunk": ["model.trunk"], "head": ["model.head"], "proxies": ["loss.metric_loss"]},
}


def owned(learning, path):
    """Parameters of a module, or the parameter itself, by its path."""
    part = learning
    for name in path.split("."):
        part = getattr(part, name)
    return [part] if isinstance(part, nn.Parameter) else list(part.parameters())


def value(learning, images, labels):
    """Loss of a batch; what the loss draws is always the same."""
    torch.manual_seed(1)
    return learning(images, labels)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_tells_the_plan_how_many_embeddings_of_a_picture_it_keeps(method):
    settings, learning = section(method), learner(method).eval()
    kept = type(learning).represent(learning.model, batch()[0])
    numbers = sum(rows[0].numel() for name, rows in kept.items() if not name.startswith("statistics"))
    told = described.METHODS[settings.method.name].vectors(settings.method.options)
    assert told * settings.embedding.dim == numbers


@pytest.mark.parametrize("method", METHODS)
def test_every_trainable_parameter_has_one_rate(method):
    learning = learner(method)
    parts = [id(parameter) for parameters in learning.parts().values() for parameter in parameters]
    assert len(parts) == len(set(parts))
    assert set(parts) == {id(parameter) for parameter in learning.parameters() if parameter.requires_grad}


@pytest.mark.parametrize("method", METHODS)
def test_parameters_have_the_rate_of_their_part(method):
    learning = learner(method)
    found = {part: {id(each) for each in parameters} for part, parameters in learning.parts().items()}
    expected = {
        part: {id(each) for path in paths for each in owned(learning, path)} for part, paths in PARTS[method].items()
    }
    assert found == expected
    assert all(expected.values())


@pytest.mark.parametrize("method", METHODS)
def test_frozen_batch_norm_has_no_rate(method):
    frozen = learner(method, {"backbone": {"batch_norm": "frozen"}})
    norms = [module for module in frozen.modules() if isinstance(module, nn.BatchNorm2d)]  # none of a head's
    resting = {id(parameter) for norm in norms for parameter in norm.parameters()}
    trained = {id(parameter) for parameters in frozen.parts().values() for parameter in parameters}
    assert resting
    assert not resting & trained
    assert resting | trained == {id(parameter) for parameter in frozen.parameters()}


def test_parts_of_the_loss_have_a_weight_decay_of_their_own():
    settings = Optimiser(**{**SETTINGS["optimiser"], "weight_decay": 0.3, "loss_weight_decay": 0.07})
    for method in METHODS:
        for group in build_optimiser(settings, learner(method)).param_groups:
            expected = 0.3 if group["name"] in ("trunk", "head", "projector") else 0.07
            assert (group["weight_decay"], group["lr"]) == (expected, 1e-2), (method, group["name"])


def test_a_part_without_a_rate_is_refused():
    rates = dict.fromkeys(("trunk", "head", "proxies", "boundaries"), 0.001)
    said = r"optimiser\.lr has no rate for 'projector'; it has trunk, head, proxies, boundaries"
    with pytest.raises(ValueError, match=said):
        build_optimiser(Optimiser(**{**SETTINGS["optimiser"], "lr": rates}), learner("projected"))


@pytest.mark.parametrize("method", METHODS)
def test_a_step_lowers_the_loss_of_its_batch(method, device):
    learning, (images, labels) = learner(method).to(device), (part.to(device) for part in batch())
    learning.set_epoch(1)
    optimiser = torch.optim.SGD(learning.parameters(), lr=2e-3)
    value(learning, images, labels)  # edges of AVSL settle on the batch
    before = value(learning, images, labels)
    before.backward()
    optimiser.step()
    assert value(learning, images, labels) < before


@pytest.mark.parametrize("method", METHODS)
def test_gradients_reach_every_part(method, device):
    learning, (images, labels) = learner(method).to(device), (part.to(device) for part in batch())
    learning.set_epoch(1)
    value(learning, images, labels).backward()
    for part, parameters in learning.parts().items():
        assert all(parameter.grad is not None for parameter in parameters), part
        assert any(parameter.grad.abs().max() > 0 for parameter in parameters), part
    first = next(module for module in learning.modules() if isinstance(module, nn.Conv2d))
    assert first.weight.grad.abs().max() > 0


def test_projector_and_regulariser_take_part_in_the_loss():
    learning, (images, labels) = learner("projected"), batch()
    found = value(learning, images, labels)
    embeddings = learning.model(images)
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    projected = unit @ learning.projector.linear.weight.T
    assert projected.shape == (9, 12)
    torch.manual_seed(1)
    metric_loss = learning.loss.loss(projected, labels)
    regulariser = similarity_regulariser(cosine_similarity(projected), 0.3)
    assert regulariser.item() > 0
    torch.testing.assert_close(found, 0.25 * regulariser + 0.75 * metric_loss, atol=1e-5, rtol=1e-5)


def test_the_projector_is_not_part_of_what_is_kept():
    learning, (images, _) = learner("projected").eval(), batch()
    kept = learning.represent(learning.model, images)
    assert kept.keys() == {"embedding"}
    assert torch.equal(kept["embedding"], learning.model(images))
    assert kept["embedding"].shape == (9, 8)
    assert not any("projector" in name for name in learning.model.state_dict())


def test_a_projector_of_the_recipe_sizes_proxies():
    learning = learner("proxies", {"projector": {"width": 12}})
    assert [tuple(each.shape) for each in learning.parts()["proxies"]] == [(3, 12)]


CONTEXTUAL = {"name": "contextual", "k": 3, "eps": 0.05, "lam": 0.4, "gamma": 0.0, "target_similarity": 0.3}
CONTEXTUAL |= {"positive_margin": 0.75, "negative_margin": 0.6}


@pytest.mark.parametrize("lam", [0.0, 0.4])
def test_the_contextual_part_is_measured_over_the_batches_of_an_epoch(lam):
    learning = learner("embedder", {"loss": {**CONTEXTUAL, "lam": lam}})
    learning.set_epoch(0)
    learning(*batch(3))
    learning.set_epoch(1)
    expected = []
    for seed in (1, 2):
        images, labels = batch(seed)
        with torch.no_grad():
            similarity = cosine_similarity(learning.model(images))
            expected.append(contextual_loss(similarity, labels, 3, 0.05).item())
        learning(images, labels)
    assert learning.measures() == {"contextual": pytest.approx(sum(expected) / 2, abs=1e-6)}
    assert not any("contextual" in name for name in learning.state_dict())


def test_other_losses_of_embeddings_measure_nothing():
    learning = learner("embedder")
    learning(*batch())
    assert learning.measures() == {}


def test_similarity_mining_starts_after_the_first_epoch():
    learning, (images, labels) = learner("sam"), batch()
    learning.set_epoch(0)
    plain = value(learning, images, labels)
    features = nn.functional.normalize(learning.model(images), dim=1)
    torch.manual_seed(1)
    torch.testing.assert_close(plain, learning.loss.metric_loss(features, labels))
    assert learning.measures() == {}
    learning.set_epoch(1)
    mined = value(learning, images, labels)
    measures = learning.measures()
    assert measures["mining_loss"] > 0
    torch.testing.assert_close(mined.item(), measures["metric_loss"] + 0.2 * measures["mining_loss"])
    learning.set_epoch(2)
    assert learning.measures() == {}


def test_options_of_similarity_mining_reach_attention_and_loss():
    options = {"method": {"name": "sam", "kind": "siamese_same", "gamma": 0.7, "alpha": 3.0, "clamp": True}}
    learning, (images, labels) = learner("sam", options), batch()
    assert (learning.loss.kind, learning.loss.gamma) == ("siamese_same", 0.7)
    seen = []
    learning.loss.forward = lambda attention, *_: seen.append(attention.settings) or torch.zeros(())
    learning(images, labels)
    assert (seen[0].alpha, seen[0].clamp) == (3.0, True)


def test_edges_and_whether_they_have_learned_survive_being_saved():
    images, labels = batch()
    trained = learner("avsl")
    assert not trained.model.edges_initialised
    for seed in (1, 2):
        trained(*batch(seed))
    resumed, restarted, untrained = (learner("avsl", seed=5) for _ in range(3))
    resumed.load_state_dict(trained.state_dict())
    restarted.load_state_dict({**trained.state_dict(), "model.edges_initialised": torch.tensor(False)})
    untrained.load_state_dict(learner("avsl").state_dict())
    assert resumed.model.edges_initialised
    assert not untrained.model.edges_initialised
    assert torch.equal(value(resumed, images, labels), value(trained, images, labels))
    assert torch.equal(resumed.model.edge_states, trained.model.edge_states)
    # without the flag the edges would start anew, from this batch alone
    value(restarted, images, labels)
    assert not torch.equal(restarted.model.edge_states, trained.model.edge_states)


def diml_learner(**method):
    torch.manual_seed(0)
    return DIMLLearner(section("diml", {"method": {"side": 3, **method}}), classes=3).eval()


@pytest.fixture
def corner_images():
    """Pictures with something in one corner: three locations a side weigh the positions there differently."""
    shown = torch.zeros(4, 3, 56, 56)
    shown[..., :20, :20] = 5 * torch.randn(4, 3, 20, 20, generator=torch.Generator().manual_seed(1))
    return shown


def global_vectors(trained, corner_images):
    with torch.no_grad():
        return trained.represent(trained.model, corner_images)["embedding"]


def test_the_vector_of_an_image_is_the_mean_of_its_locations_unless_told_otherwise(corner_images):
    trained = diml_learner()
    with torch.no_grad():
        expected = mean_vector(trained.model.regions(corner_images))
    assert torch.allclose(global_vectors(trained, corner_images), expected, atol=1e-6)
    assert torch.equal(
        global_vectors(diml_learner(global_vector="locations"), corner_images), global_vectors(trained, corner_images)
    )


def test_the_embedding_can_be_the_vector_of_an_image(corner_images):
    trained = diml_learner(global_vector="embedding")
    with torch.no_grad():
        expected = unit(trained.model.embedder(corner_images))
    assert torch.allclose(global_vectors(trained, corner_images), expected, atol=1e-6)
    assert not torch.allclose(
        global_vectors(trained, corner_images), global_vectors(diml_learner(), corner_images), atol=1e-5
    )


def test_an_unknown_vector_is_refused_by_name():
    with pytest.raises(ValueError, match="global_vector: unknown 'mean'"):
        diml_learner(global_vector="mean")
