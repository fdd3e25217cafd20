"""Identity classification, as re-identification trains: a classifier of all classes on every part of the embedding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_weights
from torch import Tensor, nn

from lookalike.losses.base import BatchLoss
from lookalike.sampling.miners import Tuples


class PartCrossEntropyLoss(BatchLoss):
    """Cross entropies of one linear classifier per part of the embedding, summed over the parts.

    ``sum_i -log softmax_y(W_i x_i + b_i)``, mean over the batch. The embedding is read as it is, not normalised, and
    cut into ``parts`` pieces ``x_i`` of equal size. As in the losses of proxies, items weigh by how often
    ``indices_tuple`` names them.

    Args:
        classes: number of training classes.
        embedding_dim: size ``D`` of the embedding, a multiple of ``parts``.
        parts: number of pieces, those of the embedding's stripes.
        generator: what the classifiers start from.

    Raises:
        ValueError: if the parts cannot share the dimensions evenly.

    Source: Sun et al. 2018 (PCB), to which SAM, Table 3, adds its mining. Classifiers start as torch's linear layers
    do, which neither states.
    """

    reads_length = True

    def __init__(
        self, *, classes: int, embedding_dim: int, parts: int = 6, generator: torch.Generator | None = None
    ) -> None:
        if parts < 1 or embedding_dim % parts:
            raise ValueError(f"embedding_dim={embedding_dim} must be a multiple of parts={parts}, at least 1")
        super().__init__(classes=classes)
        size = embedding_dim // parts
        bound = size**-0.5
        start = torch.empty(parts, classes, size + 1).uniform_(-bound, bound, generator=generator)
        self.weight = nn.Parameter(start[..., :-1].contiguous())
        self.bias = nn.Parameter(start[..., -1].contiguous())

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss against all classes."""
        parts, _, size = self.weight.shape
        pieces = embeddings.reshape(-1, parts, size).transpose(0, 1)  # (parts, B, D / parts)
        logits = torch.baddbmm(self.bias[:, None].to(pieces.dtype), pieces, self.weight.mT.to(pieces.dtype))
        targets = labels[:, None].expand(-1, parts)
        losses = F.cross_entropy(logits.permute(1, 2, 0), targets, reduction="none").sum(dim=1)  # (B,)
        weights: Tensor = convert_to_weights(tuples, labels, dtype=losses.dtype)
        return (losses * weights).mean()
