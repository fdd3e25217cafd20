"""Learning rates of every epoch and batch."""

import math

import pytest
import torch

from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import LearningRates, Schedule
from lookalike.workflow.training.optimiser import set_rates, steps_after


@pytest.mark.parametrize(
    ("step_epochs", "falls"),
    [
        (None, [0, 0, 0, 0, 0, 0]),
        (2, [0, 0, 1, 1, 2, 2]),
        ([2, 3], [0, 0, 1, 2, 2, 2]),
        ([4], [0, 0, 0, 0, 1, 1]),
    ],
)
def test_rates_fall_every_so_many_epochs_or_after_each_of_a_list(step_epochs, falls):
    assert [steps_after(epochs, step_epochs) for epochs in range(6)] == falls


@pytest.mark.parametrize(
    ("counts", "trunk", "head"),
    [
        (False, [0, 0, 1, 0.1, 0.01, 0.01], [1, 1, 1, 0.1, 0.01, 0.01]),
        (True, [0, 0, 0.01, 0.01, 0.01, 0.01], [1, 0.1, 0.01, 0.01, 0.01, 0.01]),
    ],
)
def test_steps_count_from_the_end_of_the_warm_up_or_from_the_start(counts, trunk, head):
    optimiser = torch.optim.Adam([{"params": [torch.zeros(1)], "name": part} for part in ("trunk", "head")])
    schedule = Schedule(step_epochs=[1, 2], factor=0.1, warm_up_epochs=2, warm_up_counts=counts, resting=["trunk"])
    full = LearningRates(trunk=1.0, head=1.0, proxies=1.0, boundaries=1.0)
    rates = []
    for epoch in range(6):
        set_rates(optimiser, full, schedule, epoch, epoch / 6)
        rates.append([group["lr"] for group in optimiser.param_groups])
    assert [each[0] for each in rates] == pytest.approx(trunk)
    assert [each[1] for each in rates] == pytest.approx(head)


def test_a_resting_part_asks_for_no_gradient_until_it_learns():
    trunk, head = torch.zeros(1), torch.zeros(1)
    optimiser = torch.optim.Adam([{"params": [trunk], "name": "trunk"}, {"params": [head], "name": "head"}])
    schedule = Schedule(step_epochs=None, factor=1.0, warm_up_epochs=1, warm_up_counts=False, resting=["trunk"])
    full = LearningRates(trunk=1.0, head=1.0, proxies=1.0, boundaries=1.0)
    asked = []
    for epoch in range(2):
        set_rates(optimiser, full, schedule, epoch, epoch / 2)
        asked.append((trunk.requires_grad, head.requires_grad))
    assert asked == [(False, True), (True, True)]


def test_a_cosine_falls_with_every_batch_from_the_full_rates_to_nearly_none_and_the_warm_up_counts():
    optimiser = torch.optim.Adam([{"params": [torch.zeros(1)], "name": part} for part in ("trunk", "head")])
    settled = {"decay": "cosine", "step_epochs": None, "factor": 1.0, "resting": ["trunk"]}
    full = LearningRates(trunk=2.0, head=1.0, proxies=1.0, boundaries=1.0)
    epochs, batches = 3, 50
    for counts in (False, True):
        schedule = Schedule(**settled, warm_up_epochs=1, warm_up_counts=counts)
        found = []
        for step in range(epochs * batches):
            set_rates(optimiser, full, schedule, step // batches, step / (epochs * batches))
            found.append([group["lr"] for group in optimiser.param_groups])
        slow = [(1 + math.cos(math.pi * step / 150)) / 2 for step in range(150)]
        assert [head for _, head in found] == pytest.approx(slow)
        assert [trunk for trunk, _ in found] == pytest.approx([0] * 50 + [2 * share for share in slow[50:]])
        assert found[0] == [0, 1]
        assert found[-1][1] == pytest.approx(0, abs=2e-4)


@pytest.mark.parametrize(
    ("stated", "said"),
    [({"step_epochs": [3, 5]}, r"\[3, 5\] and factor 1\.0"), ({"factor": 0.5}, r"null and factor 0\.5")],
)
def test_steps_beside_a_cosine_are_refused(stated, said):
    settled = {"decay": "cosine", "step_epochs": None, "factor": 1.0, "warm_up_epochs": 0, "warm_up_counts": False}
    with pytest.raises(
        ValueError,
        match=rf"^schedule: decay: cosine with step_epochs {said}: a cosine has no steps, null and 1\.0 are right$",
    ):
        checked(Schedule, {**settled, "resting": [], **stated}, "schedule")


def test_a_schedule_that_does_not_state_its_decay_is_written_as_before():
    stated = {"step_epochs": 2, "factor": 0.5, "warm_up_epochs": 1, "warm_up_counts": True, "resting": []}
    assert Schedule(**stated).dump() == stated
