"""Tuples of a batch: the interface of a miner, relations of items, and random choices among them."""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

Tuples = tuple[Tensor, ...]


class Miner(Protocol):
    """Interface that a loss needs of a miner.

    Labels may lie on the host beside embeddings on a device: what they alone decide then waits for no device. Tuples
    lie where the embeddings do.
    """

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


def complete_anchors(labels: Tensor) -> Tensor:
    """``(T,)`` int64: items with both a positive and a negative; found where the labels are."""
    return (positive_pairs(labels).any(dim=1) & negative_pairs(labels).any(dim=1)).nonzero().squeeze(1)


def draw_columns(log_weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One column per row, drawn with probabilities proportional to ``exp(log_weights)``.

    The largest of log weight plus Gumbel noise is such a draw, so that weights may span any range without overflow.

    Args:
        log_weights: ``(T, B)``, minus infinity where a column must not be drawn; at least one finite value per row.
        generator: source of the noise, on any device; ``None`` takes the global one.

    Returns:
        ``(T,)`` int64.
    """
    device = log_weights.device if generator is None else generator.device
    noise = torch.empty(log_weights.shape, dtype=log_weights.dtype, device=device).exponential_(generator=generator)
    noise = noise.clamp_min(torch.finfo(log_weights.dtype).tiny)
    return (log_weights - noise.log().to(log_weights.device)).argmax(dim=1)


def evenly(allowed: Tensor, like: Tensor) -> Tensor:
    """Log weights that treat all ``allowed`` columns alike, in the dtype of ``like``."""
    return torch.zeros_like(like).masked_fill(~allowed, -math.inf)


def preferring(wanted: Tensor, allowed: Tensor) -> Tensor:
    """The wanted columns of a row, or all allowed ones where none is wanted."""
    return torch.where(wanted.any(dim=1, keepdim=True), wanted, allowed)


def draw_triplets(labels: Tensor, count: int, seed: int) -> Tensor:
    """Anchors in random order, none twice, each with a positive and a negative, all drawn evenly.

    Args:
        labels: ``(N,)`` int64.
        count: largest number of triplets.
        seed: of the draw.

    Returns:
        ``(3, T)`` int64 row numbers; T is ``count``, or fewer if there are fewer anchors.

    Raises:
        ValueError: if no picture has both a partner of its class and one of another.
    """
    generator = torch.Generator().manual_seed(seed)
    _, numbers, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    able = (sizes[numbers] > 1).nonzero().squeeze(1)
    if not len(able) or len(sizes) < 2:
        raise ValueError(f"{len(labels)} labels of {len(sizes)} classes make no triplet")
    anchor = able[torch.randperm(len(able), generator=generator)[:count]]
    same = labels[anchor, None] == labels  # (T, N)
    partners = (same.scatter(1, anchor[:, None], False), ~same)
    even = (evenly(each, torch.empty(each.shape, device=each.device)) for each in partners)
    return torch.stack([anchor, *(draw_columns(each, generator) for each in even)])
