"""Values of pairs and trainings come to a mean and the error of both."""

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from lookalike.explanations.quality.interval import over_pairs


def test_the_interval_of_one_training_is_students_over_pairs():
    values = torch.randn(1, 40, generator=torch.Generator().manual_seed(0)).double()
    numbers = values[0].numpy()
    found = over_pairs(values)
    expected = student.interval(0.95, 39, numbers.mean(), numbers.std(ddof=1) / 40**0.5)
    assert found.mean == pytest.approx(numbers.mean())
    assert found.interval(0.05) == pytest.approx(expected)


def test_a_pair_without_a_value_in_one_training_is_left_out_of_all():
    values = torch.randn(3, 20, generator=torch.Generator().manual_seed(0)).double()
    values[0, 4] = values[2, 7] = torch.nan
    kept = np.delete(values.numpy(), [4, 7], axis=1)
    found = over_pairs(values)
    assert (found.seeds, found.classes) == (3, 18)
    assert found.mean == pytest.approx(kept.mean())
    assert found.interval(0.05) == pytest.approx(over_pairs(torch.from_numpy(kept)).interval(0.05))


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        values = 0.3 + rng.normal(0, 0.1, (3, 1)) + rng.normal(0, 0.5, (1, 30)) + rng.normal(0, 0.2, (3, 30))
        low, high = over_pairs(torch.from_numpy(values)).interval(0.05)
        held += low < 0.3 < high
    assert held / 400 > 0.93


def test_no_values_at_all_are_refused():
    with pytest.raises(ValueError, match="none of 2 pairs has a value in all of 2 trainings"):
        over_pairs(torch.tensor([[torch.nan, 1.0], [1.0, torch.nan]]))
    with pytest.raises(ValueError, match=r"values must be \(S, N\), seeds and pairs, not \(5,\)"):
        over_pairs(torch.zeros(5))
