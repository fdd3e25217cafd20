"""Which triplets AVSL's margin loss looks at: one per anchor, chosen from a distance matrix."""

from __future__ import annotations

import torch
from torch import Tensor


def _candidates(distance: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Masks of positives and negatives ``(N, N)``, and the anchors ``(T,)`` that have both."""
    if distance.ndim != 2 or distance.shape[0] != distance.shape[1]:
        raise ValueError(f"distance has shape {tuple(distance.shape)}, it must be (N, N)")
    if labels.shape != distance.shape[:1]:
        raise ValueError(f"labels has shape {tuple(labels.shape)}, it must be ({len(distance)},)")
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    anchors = (positive.any(dim=1) & (~same).any(dim=1)).nonzero().squeeze(1)
    return positive, ~same, anchors


def _draw(weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """One index per row, with the given weights."""
    if not len(weights):
        return weights.new_empty(0, dtype=torch.int64)
    where = weights.device if generator is None else generator.device
    return torch.multinomial(weights.to(where), 1, generator=generator).squeeze(1).to(weights.device)


@torch.no_grad()
def hardest_triplets(
    distance: Tensor, labels: Tensor, cutoff: float = 0.5, generator: torch.Generator | None = None
) -> Tensor:
    """One triplet per anchor: a random positive and the nearest negative that is not too near.

    Source: released code; the paper is silent. All distances are raised to one floor for the whole batch, the smaller
    of ``cutoff`` and the largest distance between any two images of one class; among those raised the lowest index is
    the nearest.

    Args:
        distance: ``(N, N)``.
        labels: ``(N,)`` int64.
        cutoff: upper end of the floor.
        generator: for the positives, uniform among the anchor's class.

    Returns:
        ``(T, 3)`` int64 rows of anchor, positive, negative in order of anchors; an anchor without a positive or
        without a negative has none.

    Raises:
        ValueError: if ``distance`` is not square or does not fit ``labels``.
    """
    positive, negative, anchors = _candidates(distance, labels)
    chosen = _draw(positive[anchors].to(distance.dtype), generator)
    floor = distance.masked_fill(~positive, -torch.inf).amax().clamp(max=cutoff)
    raised = distance.clamp(min=floor).masked_fill(~negative, torch.inf)
    return torch.stack([anchors, chosen, raised[anchors].argmin(dim=1)], dim=1)


@torch.no_grad()
def distance_weighted_triplets(
    distance: Tensor,
    labels: Tensor,
    dim: int,
    cutoff: float = 0.5,
    nonzero_loss_cutoff: float = 1.4,
    generator: torch.Generator | None = None,
) -> Tensor:
    """One triplet per anchor: a random positive, and a negative drawn as if distances were spread evenly.

    Source: Wu et al., Sampling Matters in Deep Embedding Learning (ICCV 2017), section 4, which AVSL cites: weights
    are the inverse of the density of distances between random points of the unit sphere.

    Args:
        distance: ``(N, N)``, squared Euclidean of unit vectors.
        labels: ``(N,)`` int64.
        dim: size of the embedding.
        cutoff: smallest distance (not squared), nearer negatives weigh as much as one there.
        nonzero_loss_cutoff: negatives farther than this (not squared) are drawn only where all are.
        generator: for positives and negatives.

    Returns:
        ``(T, 3)`` int64, as `hardest_triplets`.

    Raises:
        ValueError: as `hardest_triplets`, or if the cutoffs are not ``0 < cutoff < nonzero_loss_cutoff < 2``.
    """
    if not 0 < cutoff < nonzero_loss_cutoff < 2:
        raise ValueError(f"cutoff={cutoff} and nonzero_loss_cutoff={nonzero_loss_cutoff} must rise between 0 and 2")
    positive, negative, anchors = _candidates(distance, labels)
    chosen = _draw(positive[anchors].to(distance.dtype), generator)
    negative = negative[anchors]
    far = distance[anchors] > nonzero_loss_cutoff**2
    near = negative & ~far
    eligible = torch.where(near.any(dim=1, keepdim=True), near, negative)
    squared = distance[anchors].clamp(cutoff**2, nonzero_loss_cutoff**2)
    log_weight = -0.5 * ((dim - 2) * squared.log() + (dim - 3) * (1 - squared / 4).log())
    # Relative to the heaviest of the row, so that it never overflows.
    weight = log_weight.masked_fill(~eligible, -torch.inf).softmax(dim=1)
    return torch.stack([anchors, chosen, _draw(weight, generator)], dim=1)
