"""Learning rates of every epoch."""

import pytest
import torch

from lookalike.training.optimiser import set_rates, steps_after


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


def test_a_list_of_steps_counts_from_the_end_of_the_warm_up():
    optimiser = torch.optim.Adam([{"params": [torch.zeros(1)], "name": "trunk"}])
    schedule = {"step_epochs": [1, 2], "factor": 0.1, "warm_up_epochs": 2, "resting": ["trunk"]}
    rates = []
    for epoch in range(6):
        set_rates(optimiser, {"lr": {"trunk": 1.0}}, schedule, epoch)
        rates.append(optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0, 0, 1, 0.1, 0.01, 0.01])
