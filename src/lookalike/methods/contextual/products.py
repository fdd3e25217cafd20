"""Cosine similarities of a batch, and products and sums of ``n x n`` matrices.

Products skip zeros or take minima; sums are those with the transpose.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

# Measured on one thread in float32 and float64: from here on skipping zeros costs less than the dense product.
SMALLEST_SPARSE_SIZE = 256
LARGEST_SPARSE_DENSITY = 1 / 8


def product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right``, visiting only the non-zeros of ``left`` where there are few of them.

    Args:
        left: ``(n, m)`` mask (bool) or weights in the dtype of ``right``.
        right: ``(m, p)`` float.

    Returns:
        ``(n, p)`` in the dtype of ``right``. No gradient is recorded on the sparse way: for use inside a ``Function``.
    """
    # a GPU multiplies these sizes faster than it could list the non-zeros
    if left.device.type != "cpu" or len(left) < SMALLEST_SPARSE_SIZE:
        return left.to(right.dtype) @ right
    present = left if left.dtype == torch.bool else left != 0
    if int(present.count_nonzero()) > LARGEST_SPARSE_DENSITY * left.numel():
        return left.to(right.dtype) @ right
    rows, columns = present.nonzero(as_tuple=True)
    sizes = rows.bincount(minlength=len(left))  # (n,)
    weights = None if left.dtype == torch.bool else left[rows, columns]
    return F.embedding_bag(columns, right.contiguous(), sizes.cumsum(0) - sizes, mode="sum", per_sample_weights=weights)


def plus_transpose(matrix: Tensor) -> Tensor:
    """``matrix + matrix.T`` for a square matrix."""
    # copied first: reading columns along with rows takes six times as long where n is a power of two
    return matrix.T.clone(memory_format=torch.contiguous_format).add_(matrix)


class MinimumProduct(Function):
    """``sum_p min(left_ip, right_pj)`` in ``O(n^2)`` memory, for a ``left`` of zeros and ones and ``right`` in [0, 1].

    The value is then the matrix product. The gradient is that of ``torch.minimum``, which gives each argument half of
    it where both are equal; as ``left`` is binary, each of its cases is again a matrix product.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, left: Tensor, right: Tensor) -> Tensor:
        """``(n, p)`` sums of minima."""
        ctx.save_for_backward(left, right)
        return left @ right

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of ``left`` and ``right``."""
        left, right = ctx.saved_tensors  # type: ignore[attr-defined]
        zeros, ones = (right == 0).to(right.dtype), (right == 1).to(right.dtype)  # where a 0, a 1 of left meets a tie
        of_zeros = gradient.sum(dim=1, keepdim=True) - gradient @ zeros.T / 2
        of_ones = gradient @ ones.T / 2
        to_left = torch.where(left == 0, of_zeros, of_ones)
        to_right = zeros / 2 * ((1 - left).T @ gradient) + (1 - ones / 2) * (left.T @ gradient)
        return to_left, to_right


def minimum_product(left: Tensor, right: Tensor) -> Tensor:
    """Sums of minima ``(n, p)`` of ``left`` ``(n, m)``, zeros and ones, and ``right`` ``(m, p)`` in [0, 1]."""
    sums: Tensor = MinimumProduct.apply(left, right)
    return sums


def check_square(similarity: Tensor) -> None:
    """Refuse a similarity that is not a square matrix with a ``ValueError``."""
    if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1]:
        raise ValueError(f"similarity has shape {tuple(similarity.shape)}, a square (n, n) matrix is needed")


def cosine_similarity(embeddings: Tensor) -> Tensor:
    """Cosine similarities ``(n, n)`` of ``(n, D)`` embeddings, the diagonal included.

    16-bit embeddings are compared in float32 and autocast is left out, as in the released code.
    """
    if embeddings.ndim != 2:
        raise ValueError(f"embeddings have shape {tuple(embeddings.shape)}, (n, D) is needed")
    with torch.autocast(embeddings.device.type, enabled=False):
        precise = embeddings.to(torch.promote_types(embeddings.dtype, torch.float32))
        similarity: Tensor = _Gram.apply(F.normalize(precise, dim=1))
        return similarity


class _Gram(Function):
    """``f f^T``; its gradient ``(g + g^T) f`` takes one product where automatic differentiation takes two."""

    @staticmethod
    def forward(ctx: FunctionCtx, embeddings: Tensor) -> Tensor:
        ctx.save_for_backward(embeddings)
        return embeddings @ embeddings.T

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        (embeddings,) = ctx.saved_tensors  # type: ignore[attr-defined]
        result: Tensor = plus_transpose(gradient) @ embeddings
        return result
