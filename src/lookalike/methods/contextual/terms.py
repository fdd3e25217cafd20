"""The three parts of the contextual loss (paper, Eq. 5, 7 and 29), as functions of a similarity matrix."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from lookalike.methods.contextual.cosine import check_square
from lookalike.methods.contextual.similarity import contextual_similarity


def contextual_loss(
    similarity: Tensor,
    labels: Tensor,
    k: int,
    eps: float,
    *,
    alpha: float = 10.0,
    variant: str = "full",
    correct_gradient: bool = False,
) -> Tensor:
    """Mean squared difference of contextual similarity and shared class, pairs of a sample with itself counted as 0.

    Args:
        similarity: ``(n, n)`` cosine similarities, the diagonal included.
        labels: ``(n,)`` int64.
        k: neighbours of a sample, itself counted; the paper takes the samples per class.
        eps: margin on the squared Euclidean distance.
        alpha: gradient of the Heaviside step.
        variant: key of the similarity's variants, see ``contextual_similarity``.
        correct_gradient: keep of the gradient only what brings a class together and pushes two classes apart, for
            every entry of ``similarity`` by itself (Eq. 10, Table 1).

    Returns:
        Scalar in [0, 1): the sum over ordered pairs divided by ``n^2``.

    Raises:
        ValueError: as ``contextual_similarity``, or if the labels are not ``(n,)``.

    Source: Supervised Metric Learning to Rank, Eq. 5.
    Differs: Algorithm 1 prints ``w - s`` for ``w - y``, a misprint.
    """
    same = _same_class(similarity, labels)
    if correct_gradient:
        similarity = _CorrectGradient.apply(similarity, same)
    contextual = contextual_similarity(similarity, k, eps, alpha=alpha, variant=variant)
    target = same.to(contextual.dtype)
    target.diagonal().copy_(contextual.detach().diagonal())
    return (contextual - target).square().mean()


def contrastive_loss(similarity: Tensor, labels: Tensor, positive_margin: float, negative_margin: float) -> Tensor:
    """Mean violation of the margins, over the violating positive pairs plus over the violating negative pairs.

    Args:
        similarity: ``(n, n)`` cosine similarities, the diagonal included.
        labels: ``(n,)`` int64.
        positive_margin: similarity that pairs of one class should reach.
        negative_margin: similarity that pairs of two classes should stay below.

    Returns:
        Scalar. A side without a violating pair contributes 0, on the graph.

    Raises:
        ValueError: if ``similarity`` is not square or the labels are not ``(n,)``.

    Source: Supervised Metric Learning to Rank, Eq. 29; ``ContrastiveLoss`` of pytorch-metric-learning with cosine
    similarity has the same value. Differs: the released code returns a constant if no pair violates its margin.
    """
    same = _same_class(similarity, labels)
    violation = torch.where(same, positive_margin - similarity, similarity - negative_margin).relu_()  # (n, n)
    violating = violation.detach() > 0
    positives = (violating & same).count_nonzero().clamp_min(1)
    negatives = (violating & ~same).count_nonzero().clamp_min(1)
    weight = torch.where(same, 1 / positives.to(similarity.dtype), 1 / negatives.to(similarity.dtype))
    return (violation * weight).sum()


def similarity_regulariser(similarity: Tensor, target: float) -> Tensor:
    """Squared difference of ``target`` and the mean of all ``n^2`` similarities, the diagonal included.

    Args:
        similarity: ``(n, n)`` cosine similarities.
        target: the mean to be kept.

    Returns:
        Scalar.

    Raises:
        ValueError: if ``similarity`` is not square.

    Source: Supervised Metric Learning to Rank, Eq. 7 and 30.
    """
    check_square(similarity)
    return (target - similarity.mean()).square()


class _CorrectGradient(Function):
    """Identity whose gradient keeps the entries that raise the similarity of a class or lower that of two."""

    @staticmethod
    def forward(ctx: FunctionCtx, similarity: Tensor, same: Tensor) -> Tensor:
        ctx.save_for_backward(same)
        return similarity.view_as(similarity)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        (same,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return torch.where(same, gradient.clamp(max=0), gradient.clamp(min=0)), None


def _same_class(similarity: Tensor, labels: Tensor) -> Tensor:
    """Whether two samples share their class, ``(n, n)`` bool, after a check of the shapes."""
    check_square(similarity)
    if labels.shape != similarity.shape[:1]:
        raise ValueError(f"labels have shape {tuple(labels.shape)}, ({len(similarity)},) is needed, one per sample")
    return labels[:, None] == labels
