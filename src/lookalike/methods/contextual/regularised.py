"""The similarity regulariser beside any other loss (paper, Table 6)."""

from __future__ import annotations

from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.methods.contextual.cosine import cosine_similarity
from lookalike.methods.contextual.terms import similarity_regulariser

COMBINATIONS = ("convex", "add")


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
