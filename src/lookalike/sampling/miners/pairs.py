"""Positive and negative pairs, for losses that need no triplets."""

from __future__ import annotations

import torch
from pytorch_metric_learning import miners as library
from torch import Tensor

from lookalike.base.tensors import beside
from lookalike.sampling.miners.tuples import Tuples, draw_columns, evenly, positive_pairs


class NPairMiner:
    """For each anchor one positive, and all other items of the batch as its negatives.

    Returns four index tensors: pairs of anchor and positive, then pairs of anchor and negative.

    Source: DIML, released code, N-pair and Angular loss. Items of the anchor's own class other than the positive are
    among the negatives, as there; it makes no difference while a class has two items per batch.
    """

    def __init__(self, *, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    @torch.no_grad()
    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        positives = positive_pairs(labels)
        anchor = positives.any(dim=1).nonzero().squeeze(1)
        if not len(anchor):
            anchor = beside(anchor, embeddings)
            return anchor, anchor.clone(), anchor.clone(), anchor.clone()
        weights = evenly(positives[anchor], torch.empty(len(anchor), len(labels), device=labels.device))
        positive = draw_columns(weights, self.generator)
        others = torch.ones_like(weights, dtype=torch.bool)
        others.scatter_(1, torch.stack([anchor, positive], dim=1), False)
        row, negative = others.nonzero(as_tuple=True)
        tuples = anchor, positive, anchor[row], negative
        return tuple(beside(indices, embeddings) for indices in tuples)


class MultiSimilarityMiner:
    """Positives not closer than the closest negative by ``epsilon`` of cosine similarity, and the reverse.

    Returns four index tensors, positive pairs and negative pairs; pytorch-metric-learning's miner as it is.
    """

    def __init__(self, *, epsilon: float = 0.1, generator: torch.Generator | None = None) -> None:
        self.generator = generator  # nothing is drawn; all miners are built alike
        self.criterion = library.MultiSimilarityMiner(epsilon=epsilon)

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        anchor, positive, other_anchor, negative = self.criterion(embeddings, beside(labels, embeddings))
        return anchor, positive, other_anchor, negative
