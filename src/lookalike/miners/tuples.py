"""What a miner is, and how the items of a batch stand to each other."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

Tuples = tuple[Tensor, ...]


class Miner(Protocol):
    """What a loss needs of a miner."""

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tuples:
        """Indices of tuples within the batch."""
        ...


def unit_distance(embeddings: Tensor) -> Tensor:
    """Euclidean distances ``(B, B)`` between the normalised rows of ``embeddings`` ``(B, D)``."""
    unit = F.normalize(embeddings, dim=1)
    return torch.cdist(unit, unit)


def positive_pairs(labels: Tensor) -> Tensor:
    """``(B, B)`` bool: same class, but not the item itself."""
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return (labels[:, None] == labels[None, :]) & ~itself


def negative_pairs(labels: Tensor) -> Tensor:
    """``(B, B)`` bool: different classes."""
    return labels[:, None] != labels[None, :]
