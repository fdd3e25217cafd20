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


@pytest.mark.parametrize(
    ("counts", "trunk", "head"),
    [
        (False, [0, 0, 1, 0.1, 0.01, 0.01], [1, 1, 1, 0.1, 0.01, 0.01]),
        (True, [0, 0, 0.01, 0.01, 0.01, 0.01], [1, 0.1, 0.01, 0.01, 0.01, 0.01]),
    ],
)
def test_steps_count_from_the_end_of_the_warm_up_or_from_the_start(counts, trunk, head):
    optimiser = torch.optim.Adam([{"params": [torch.zeros(1)], "name": part} for part in ("trunk", "head")])
    schedule = {"step_epochs": [1, 2], "factor": 0.1, "warm_up_epochs": 2, "warm_up_counts": counts}
    rates = []
    for epoch in range(6):
        set_rates(optimiser, {"lr": {"trunk": 1.0, "head": 1.0}}, {**schedule, "resting": ["trunk"]}, epoch)
        rates.append([group["lr"] for group in optimiser.param_groups])
    assert [each[0] for each in rates] == pytest.approx(trunk)
    assert [each[1] for each in rates] == pytest.approx(head)
