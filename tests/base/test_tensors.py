"""Formulas that several papers share."""

import math

import pytest
import torch

from lookalike.base.tensors import log_one_plus_sum_exp, unit


def test_vectors_have_length_one_and_zero_stays_zero():
    vectors = torch.tensor([[[3.0, 4.0], [0.0, 0.0]]])
    assert torch.allclose(unit(vectors), torch.tensor([[[0.6, 0.8], [0.0, 0.0]]]))


@pytest.mark.parametrize("dim", [0, 1])
def test_the_sum_runs_over_what_is_kept_and_is_zero_where_nothing_is(dim):
    exponents = torch.tensor([[0.5, -1.0, 2.0], [0.1, 0.2, 0.3]], dtype=torch.float64)
    kept = torch.tensor([[True, False, True], [False, False, False]])
    found = log_one_plus_sum_exp(exponents if dim == 1 else exponents.T, kept if dim == 1 else kept.T, dim=dim)
    assert found.tolist() == pytest.approx([math.log(1 + math.exp(0.5) + math.exp(2.0)), 0.0], rel=1e-12)


def test_large_exponents_do_not_overflow():
    assert log_one_plus_sum_exp(torch.tensor([[1e4]]), torch.tensor([[True]]), dim=1).item() == 1e4
