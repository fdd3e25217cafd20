"""The contextual loss (paper, Eq. 6) and its parts (Eq. 5, 7 and 29), as functions of a similarity matrix.

`Regularised` sets the similarity regulariser beside any other loss (Table 6). Similarity and re-ranking are
re-exported.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from lookalike.base.checks import require_known
from lookalike.methods.contextual.products import check_square, cosine_similarity
from lookalike.methods.contextual.retrieval import rerank
from lookalike.methods.contextual.similarity import VARIANTS, contextual_similarity

__all__ = [
    "ContextualLoss",
    "contextual_loss",
    "contextual_similarity",
    "contrastive_loss",
    "rerank",
    "similarity_regulariser",
]

COMBINATIONS = ("convex", "add")


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
    target = same.to(contextual.dtype)  # (n, n)
    # An entry equal to its target has neither loss nor gradient.
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
    positives = (violating & same).count_nonzero()
    negatives = violating.count_nonzero() - positives
    # Each kind is averaged over its own violations, in one pass over all entries.
    positive, negative = torch.stack([positives, negatives]).clamp_min_(1).to(similarity.dtype).reciprocal_()
    weight = torch.where(same, positive, negative)
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
        # Descent raises a similarity whose gradient is negative, and lowers one whose gradient is positive.
        return torch.where(same, gradient.clamp(max=0), gradient.clamp(min=0)), None


def _same_class(similarity: Tensor, labels: Tensor) -> Tensor:
    """Whether two samples share their class, ``(n, n)`` bool, after a check of the shapes."""
    check_square(similarity)
    if labels.shape != similarity.shape[:1]:
        raise ValueError(f"labels have shape {tuple(labels.shape)}, ({len(similarity)},) is needed, one per sample")
    return labels[:, None] == labels


class ContextualLoss(nn.Module):
    """``lam`` contextual + ``(1 - lam)`` contrastive + ``gamma`` regulariser, all on one similarity matrix.

    ``lam sum_{i != j} (y_ij - w_ij)^2 / B^2 + (1 - lam) contrastive_cosine + gamma (target_similarity - mean s)^2``,
    with the contextual similarity ``w`` of Eq. 1 to 4, ``y`` 1 for a shared class, and the mean over all ``B^2``.

    Args:
        k: neighbours of a sample, itself counted; the paper takes the samples per class.
        eps: margin of the neighbourhoods on the squared Euclidean distance.
        lam: weight of the contextual part, in [0, 1].
        gamma: weight of the similarity regulariser, 0 or more.
        target_similarity: the mean similarity that the regulariser keeps.
        positive_margin: similarity that pairs of one class should reach.
        negative_margin: similarity that pairs of two classes should stay below.
        alpha: gradient of the Heaviside step.
        variant: contextual similarity of the ablation, see ``contextual_similarity``.
        correct_gradient: whether only gradients that serve the classes are kept, see ``contextual_loss``.
        contrastive_weight: weight of the contrastive part where it is not ``1 - lam``. The released code of the
            256 x 256 experiments weighs it ``1 - lam - gamma``, 0.5 in Tables 4 and 6 to 8.

    Attributes:
        contextual: value of the contextual part in the last batch, a scalar without gradient.

    Raises:
        ValueError: if ``k``, ``eps``, ``lam``, ``gamma`` or ``variant`` is outside its range.

    Source: Contextual (Supervised Metric Learning to Rank), Eq. 6.
    Differs: ``lam`` is the paper's; the released code of the 224 x 224 experiments calls ``1 - lam`` by that name.
    """

    def __init__(
        self,
        k: int,
        eps: float,
        lam: float,
        gamma: float,
        target_similarity: float,
        positive_margin: float,
        negative_margin: float,
        alpha: float = 10.0,
        *,
        variant: str = "full",
        correct_gradient: bool = False,
        contrastive_weight: float | None = None,
    ) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k={k} is below 1")
        if not eps >= 0:
            raise ValueError(f"eps={eps} is negative, 0 or more is needed")
        if not 0 <= lam <= 1:
            raise ValueError(f"lam={lam} is outside [0, 1]")
        if not gamma >= 0:
            raise ValueError(f"gamma={gamma} is negative, 0 or more is needed")
        require_known("variant", variant, VARIANTS)
        self.k = k
        self.eps = eps
        self.lam = lam
        self.gamma = gamma
        self.target_similarity = target_similarity
        self.positive_margin = positive_margin
        self.negative_margin = negative_margin
        self.alpha = alpha
        self.variant = variant
        self.correct_gradient = correct_gradient
        self.contrastive_weight = 1 - lam if contrastive_weight is None else contrastive_weight
        self.contextual = torch.tensor(math.nan)

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """Loss of a batch, a scalar.

        Args:
            embeddings: ``(n, D)``, not yet normalised.
            labels: ``(n,)`` int64.
            indices_tuple: must be ``None``; there so that the loss is called like one of pytorch-metric-learning.

        Raises:
            ValueError: if the shapes do not belong together, the batch is smaller than ``k``, or tuples are given.
        """
        if indices_tuple is not None:
            raise ValueError("indices_tuple must be None: this loss takes all pairs of the batch")
        similarity = cosine_similarity(embeddings)
        # Neighbourhoods hang on differences of similarities that 16 bits would round away.
        with torch.autocast(similarity.device.type, enabled=False):
            contextual = contextual_loss(
                similarity,
                labels,
                self.k,
                self.eps,
                alpha=self.alpha,
                variant=self.variant,
                correct_gradient=self.correct_gradient,
            )
            self.contextual = contextual.detach()  # for the history of a training
            contrastive = contrastive_loss(similarity, labels, self.positive_margin, self.negative_margin)
            regulariser = similarity_regulariser(similarity, self.target_similarity)
            return self.lam * contextual + self.contrastive_weight * contrastive + self.gamma * regulariser


class Regularised(nn.Module):
    """Another loss with the similarity regulariser, which keeps the mean cosine similarity of a batch.

    Args:
        loss: called like those of pytorch-metric-learning, returns a scalar.
        gamma: weight of the regulariser, 0 or more; at most 1 if ``convex``.
        target_similarity: the mean to be kept.
        combine: ``convex`` for ``gamma`` regulariser + ``(1 - gamma)`` loss (Table 6), ``add`` for loss + ``gamma``
            regulariser (the released code's baselines of the 224 x 224 experiments).

    Raises:
        ValueError: if ``gamma`` is outside its range or ``combine`` is unknown.

    Source: Supervised Metric Learning to Rank, Eq. 7 and Table 6.
    """

    def __init__(self, loss: nn.Module, gamma: float, target_similarity: float, combine: str = "convex") -> None:
        super().__init__()
        require_known("combine", combine, COMBINATIONS)
        if not gamma >= 0 or (combine == "convex" and gamma > 1):
            raise ValueError(f"gamma={gamma} is outside [0, 1] (convex) or [0, inf) (add), combine={combine!r}")
        self.loss = loss
        self.gamma = gamma
        self.target_similarity = target_similarity
        self.loss_weight = 1 - gamma if combine == "convex" else 1.0

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """Loss of a batch ``(n, D)``, not yet normalised, with labels ``(n,)``; a scalar. Tuples are for the loss."""
        regulariser = similarity_regulariser(cosine_similarity(embeddings), self.target_similarity)
        loss: Tensor = self.loss(embeddings, labels, indices_tuple)
        return self.gamma * regulariser + self.loss_weight * loss
