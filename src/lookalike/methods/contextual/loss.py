"""The contextual loss (paper, Eq. 6). Re-exports its parts, the similarity and the re-ranking."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.methods.contextual.cosine import cosine_similarity
from lookalike.methods.contextual.reranking import rerank
from lookalike.methods.contextual.similarity import VARIANTS, contextual_similarity
from lookalike.methods.contextual.terms import contextual_loss, contrastive_loss, similarity_regulariser

__all__ = [
    "ContextualLoss",
    "contextual_loss",
    "contextual_similarity",
    "contrastive_loss",
    "rerank",
    "similarity_regulariser",
]


class ContextualLoss(nn.Module):
    """``lam`` contextual + ``(1 - lam)`` contrastive + ``gamma`` regulariser, all on one similarity matrix.

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

    Source: Supervised Metric Learning to Rank, Eq. 6.
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
            self.contextual = contextual.detach()
            contrastive = contrastive_loss(similarity, labels, self.positive_margin, self.negative_margin)
            regulariser = similarity_regulariser(similarity, self.target_similarity)
            return self.lam * contextual + self.contrastive_weight * contrastive + self.gamma * regulariser
