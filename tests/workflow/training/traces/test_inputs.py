"""Torch draws what numpy's generator gives, in float64."""

import numpy as np
import pytest
import torch

from lookalike.workflow.training.traces.inputs import same_everywhere


def drawn(seed):
    with same_everywhere(seed):
        return [
            torch.nn.Linear(3, 4).weight.detach(),
            torch.empty(5).exponential_(2.0),
            torch.randn(6),
            torch.empty(3).normal_(1.0, 3.0),
            torch.rand(2),
            torch.randperm(9),
            torch.randint(3, 8, (20,)),
            torch.multinomial(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 1),
        ]


def test_torch_and_its_seed_have_no_part_in_the_draws():
    torch.manual_seed(1)
    first = drawn(0)
    torch.manual_seed(2)
    assert all(torch.equal(one, other) for one, other in zip(first, drawn(0), strict=True))
    assert not torch.equal(first[2], drawn(1)[2])


def test_numbers_are_those_of_philox_in_their_own_range():
    weight, exponential, normal, shifted, uniform, order, integers, columns = drawn(0)
    random = np.random.Generator(np.random.Philox(0))
    bound = 3**-0.5
    np.testing.assert_allclose(weight.numpy(), -bound + 2 * bound * random.random((4, 3)), rtol=1e-15)
    assert weight.dtype == torch.float64
    random.random(4)  # the layer's bias
    np.testing.assert_array_equal(exponential.numpy(), random.standard_exponential(5) / 2)
    np.testing.assert_array_equal(normal.numpy(), random.standard_normal(6))
    np.testing.assert_array_equal(shifted.numpy(), 1 + 3 * random.standard_normal(3))
    np.testing.assert_array_equal(uniform.numpy(), random.random(2))
    np.testing.assert_array_equal(order.numpy(), random.permutation(9))
    np.testing.assert_array_equal(integers.numpy(), random.integers(3, 8, 20))
    assert columns.tolist() == [[1], [0]]


def test_a_kind_of_draw_without_a_counterpart_is_refused():
    with same_everywhere(0), pytest.raises(ValueError, match=r"no draws for aten\.bernoulli"):
        torch.bernoulli(torch.tensor([0.5]))


def test_the_default_dtype_is_as_before_afterwards():
    with pytest.raises(KeyError), same_everywhere(0):
        raise KeyError
    assert torch.get_default_dtype() == torch.float32
