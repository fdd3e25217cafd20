"""Cosine similarities of a batch with itself, on which all parts of the loss work."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from lookalike.methods.contextual.products import plus_transpose


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
