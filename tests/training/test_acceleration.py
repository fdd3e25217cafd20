"""What makes a training quicker changes nothing but the rounding, and is asked for by name."""

import pytest
import torch

from lookalike.models.backbones import Trunk
from lookalike.training.acceleration import accelerate
from trainings import CROP, METHODS, batch
from trainings import learner as build


@pytest.mark.parametrize("method", METHODS)
def test_every_methods_trunk_is_compiled_and_its_state_keeps_its_names(method, monkeypatch):
    learner = build(method)
    before = list(learner.state_dict())
    compiled = []
    monkeypatch.setattr(Trunk, "compile", lambda trunk: compiled.append(trunk))
    accelerate(learner.model, [])
    assert compiled == []
    accelerate(learner.model, ["compile"])
    assert len(compiled) == 1
    assert list(learner.state_dict()) == before


def test_cudnn_tries_its_kernels_only_when_asked(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    learner = build("embedder")
    accelerate(learner.model, ["compile"])
    assert not torch.backends.cudnn.benchmark
    accelerate(learner.model, ["cudnn_benchmark"])
    assert torch.backends.cudnn.benchmark


def test_a_learner_computes_in_the_half_precision_that_was_asked_for():
    for settings, enabled, kind in (
        ({}, False, torch.float16),
        ({"mixed_precision": True}, True, torch.float16),
        ({"acceleration": ["bfloat16"]}, True, torch.bfloat16),
    ):
        learner = build("embedder", settings)
        assert (learner.mixed_precision, learner.half_type) == (enabled, kind)


@pytest.mark.parametrize("method", METHODS)
def test_searches_between_epochs_compute_in_the_precision_of_the_training(method, monkeypatch):
    built = build(method).eval()
    images = torch.randn(4, 3, CROP, CROP, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = built.represent(built.model, images), built.searched(built.model, images)
        assert all(
            torch.equal(expected[name], found[name]) for name in expected
        )  # full precision, as recipes of the CPU
        # What a recipe with mixed precision gets on CUDA, on the processor here.
        monkeypatch.setattr(built, "half_precision", lambda images: torch.autocast("cpu", torch.bfloat16))
        halved = built.searched(built.model, images)
    assert halved.keys() == expected.keys()
    assert all(each.dtype == torch.float32 for each in halved.values())
    assert any(not torch.equal(expected[name], halved[name]) for name in expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_processor_learns_in_bfloat16_when_asked_and_never_in_float16(method):
    images, labels = batch()
    losses = {}
    for name, over in {
        "full": {},
        "mixed": {"mixed_precision": True},
        "bfloat16": {"acceleration": ["bfloat16"]},
    }.items():
        learner = build(method, over)
        loss = learner(images, labels)
        loss.backward()
        losses[name] = loss.item()
        assert {each.dtype for each in learner.parameters()} == {torch.float32}
        gradients = [each.grad for each in learner.parameters() if each.grad is not None]
        assert gradients and all(each.isfinite().all() for each in gradients)
    assert losses["mixed"] == losses["full"] != losses["bfloat16"]
    assert losses["bfloat16"] == pytest.approx(losses["full"], rel=0.05)
