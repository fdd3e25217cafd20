from __future__ import annotations

import pytest
import torch

from lookalike.methods.contextual.products import SMALLEST_SPARSE_SIZE, minimum_product, plus_transpose, product


def random_mask(rows: int, columns: int, density: float) -> torch.Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(0)) < density


@pytest.mark.parametrize("density", [0.0, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("rows", [3, SMALLEST_SPARSE_SIZE + 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_product_of_masks_and_weights_is_the_matrix_product(density, rows, dtype):
    generator = torch.Generator().manual_seed(1)
    mask = random_mask(rows, 40, density)
    weights = torch.randn(rows, 40, generator=generator, dtype=dtype) * mask
    right = torch.randn(40, 7, generator=generator, dtype=dtype)
    tolerance = {"rtol": 0, "atol": 1e-5 if dtype == torch.float32 else 1e-13}
    torch.testing.assert_close(product(mask, right), mask.to(dtype) @ right, **tolerance)
    torch.testing.assert_close(product(weights, right), weights @ right, **tolerance)


def test_product_takes_a_transposed_right_side():
    mask = random_mask(SMALLEST_SPARSE_SIZE, SMALLEST_SPARSE_SIZE, 0.02)
    right = torch.randn(30, SMALLEST_SPARSE_SIZE, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(product(mask, right.T), mask.float() @ right.T, rtol=0, atol=1e-5)


def test_minimum_product_has_the_value_and_gradient_of_minima():
    generator = torch.Generator().manual_seed(3)
    left = random_mask(6, 5, 0.5).double()
    right = torch.rand(5, 4, generator=generator, dtype=torch.float64)
    right[0, 0], right[1, 2], right[2, 1], right[3, 3] = 0, 0, 1, 1  # equal to some of left
    cotangent = torch.randn(6, 4, generator=generator, dtype=torch.float64)

    pair = left.clone().requires_grad_(), right.clone().requires_grad_()
    expected = torch.minimum(pair[0][:, :, None], pair[1][None]).sum(dim=1)
    expected_gradients = torch.autograd.grad((expected * cotangent).sum(), pair)
    actual = minimum_product(*pair)
    gradients = torch.autograd.grad((actual * cotangent).sum(), pair)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(gradients, expected_gradients, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 5])
def test_the_sum_with_the_transpose_leaves_its_input_alone(n):
    rows = torch.randn(n, n, generator=torch.Generator().manual_seed(4))
    for matrix in (rows, rows.T, rows[:1].expand(n, n)):
        before = matrix.clone()
        assert torch.equal(plus_transpose(matrix), before + before.T)
        assert torch.equal(matrix, before)
