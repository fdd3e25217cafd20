"""A step is measured for every method."""

import pytest
import torch

from lookalike.app.own import step_cost as module
from lookalike.app.own.step_cost import StepCost, kind_of, step_cost
from lookalike.workflow.plan.plan import Plan
from trainings import METHODS, section

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("method", METHODS)
def test_a_step_of_every_method_can_be_measured(method, two_threads, device):
    assert step_cost(section(method), device).of(1) > 0
    assert torch.get_num_threads() == 2


def test_a_step_of_every_loss_of_all_tables_can_be_measured():
    plan = Plan(MINI)
    pairs = plan.runs[["recipe", "dataset"]].drop_duplicates().itertuples(index=False)
    sections = {str(train.loss): train for pair in pairs if (train := plan.settings(*pair).train).loss}
    assert len(sections) > 20
    for train in sections.values():
        assert step_cost(train, torch.device("cpu")).of(1) > 0


def test_weights_are_not_downloaded_to_measure():
    backbone = {"backbone": {"name": "tiny", "weights": "no such weights", "batch_norm": "trained"}}
    assert step_cost(section("embedder", backbone), torch.device("cpu")).of(1) > 0


def test_a_kind_is_network_method_crop_and_precision_whatever_the_loss():
    assert kind_of(section("embedder")) == kind_of(section("proxies")) != kind_of(section("avsl"))
    assert str(kind_of(section("sam", {"mixed_precision": True}))) == "tiny, sam triplet, 24 px, mixed precision"
    faster = section("sam", {"acceleration": ["compile", "bfloat16"]})
    assert str(kind_of(faster)) == "tiny, sam triplet, 24 px, bfloat16, compile"


def test_plans_between_all_pairs_are_a_kind_of_their_own_and_grow_with_the_square_of_the_batch(monkeypatch):
    loss = {"name": "multi_similarity", "alpha": 2.0, "beta": 40.0, "base": 0.5, "epsilon": 0.1}
    pairs = section("diml", {"loss": loss})
    triplets = section("diml", {"loss": {"name": "margin", "margin": 0.2, "boundary": 1.2}})
    assert (kind_of(pairs).method, kind_of(triplets).method) == ("diml multi_similarity", "diml")
    monkeypatch.setattr(module, "_measured", lambda train, device, pictures: 3.0 * pictures + 0.5 * pictures**2)
    assert step_cost(pairs, torch.device("cpu")).of(100) == pytest.approx(300 + 5000)
    assert step_cost(triplets, torch.device("cpu")) == StepCost(3.0 + 0.5 * module.PICTURES)


def test_a_crop_may_have_two_sides():
    train = section("embedder", {"image": {"crop_px": [24, 16]}})
    assert str(kind_of(train)) == "tiny, embedder, 24 x 16 px"
    assert step_cost(train, torch.device("cpu")).of(1) > 0
