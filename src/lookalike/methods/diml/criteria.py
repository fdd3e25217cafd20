"""The two losses that DIML trains with, on the mean of structural and global measures.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Eq. 10 to 12; the numbers are
the released code's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lookalike.checks import require_range
from lookalike.methods.diml.head import mean_vector
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.similarity import location_distance, structural_similarity
from lookalike.tensors import log_one_plus_sum_exp, unit

SMOOTHING = 1e-6
"""Added to squared distances in the released code, so that equal vectors have a gradient."""


def margin_loss(
    regions: Tensor, triplets: Tensor, labels: Tensor, boundary: Tensor, *, margin: float = 0.2, **matching: Any
) -> Tensor:
    """Keep positives ``margin`` inside and negatives ``margin`` outside the boundary of the anchor's class.

    The distance is the mean of the structural and the global one, both Euclidean.

    Source: DIML, Eq. 10 and 11. Differs: the released code compares every distance with the boundary of every anchor;
    here each pair has its own, which is the same while boundaries are equal. Its margin is fixed, as here; the paper
    calls it learnable.

    Args:
        regions: ``(B, R, D)``, not normalised.
        triplets: ``(T, 3)`` int64 rows of anchor, positive, negative.
        labels: ``(B,)`` int64.
        boundary: ``(classes,)``, learnable.
        margin: half the width of the band to keep free.
        matching: options of `Matching`.

    Returns:
        Scalar: sum of the hinges over the number of triplets with a positive one; 0 without any.

    Raises:
        ValueError: if the shapes do not belong together, a triplet names no image or a label has no boundary.
    """
    check_batch(regions, labels)
    if triplets.ndim != 2 or triplets.shape[1] != 3:
        raise ValueError(f"triplets has shape {tuple(triplets.shape)}, it must be (T, 3)")
    if boundary.ndim != 1:
        raise ValueError(f"boundary has shape {tuple(boundary.shape)}, it must be (classes,)")
    require_range("triplets", triplets, len(regions))
    require_range("labels", labels, len(boundary))
    anchor, positive, negative = triplets.unbind(dim=1)
    distance = pair_distance(regions, anchor.repeat(2), torch.cat([positive, negative]), **matching)  # (2 T,)
    to_positive, to_negative = distance[: len(triplets)], distance[len(triplets) :]
    limit = boundary[labels[anchor]]  # (T,)
    too_far, too_near = (to_positive - limit + margin).relu(), (limit + margin - to_negative).relu()
    active = ((too_far > 0) | (too_near > 0)).sum()
    return (too_far + too_near).sum() / active.clamp(min=1)


def multi_similarity_loss(
    regions: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 40.0,
    base: float = 0.5,
    epsilon: float = 0.1,
    **matching: Any,
) -> Tensor:
    """Multi-Similarity loss on the mean of structural and global similarity.

    Negatives count that are more similar than the least similar positive less ``epsilon``, and positives that are less
    similar than the most similar negative plus ``epsilon``.

    Source: DIML, Eq. 11 and 12; Wang et al., "Multi-Similarity Loss with General Pair Weighting", 2019.

    Args:
        regions: ``(B, R, D)``, not normalised.
        labels: ``(B,)`` int64.
        alpha: scale of the positives.
        beta: scale of the negatives.
        base: similarity that both kinds are compared with.
        epsilon: slack of the choice of pairs.
        matching: options of `Matching`.

    Returns:
        Scalar: mean over the anchors that keep pairs, 0 without any.

    Raises:
        ValueError: if the shapes do not belong together.
    """
    check_batch(regions, labels)
    vectors, units = mean_vector(regions), unit(regions)
    structural = structural_similarity(units, vectors, units, vectors, **matching)  # (B, B)
    similarity = (structural + vectors @ vectors.T) / 2
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    weakest = similarity.masked_fill(~positive, torch.inf).amin(dim=1, keepdim=True)  # (B, 1)
    strongest = similarity.masked_fill(same, -torch.inf).amax(dim=1, keepdim=True)  # (B, 1)
    hard_positive = positive & (similarity - epsilon < strongest)
    hard_negative = ~same & (similarity + epsilon > weakest)
    pull = log_one_plus_sum_exp(-alpha * (similarity - base), hard_positive, dim=1) / alpha  # (B,)
    push = log_one_plus_sum_exp(beta * (similarity - base), hard_negative, dim=1) / beta  # (B,)
    # An anchor keeps pairs of both kinds or none: the extremes are kept together.
    return (pull + push).sum() / hard_positive.any(dim=1).sum().clamp(min=1)


def pair_distance(regions: Tensor, first: Tensor, second: Tensor, **matching: Any) -> Tensor:
    """Mean of structural and global Euclidean distance of some pairs.

    Args:
        regions: ``(B, R, D)``, not normalised.
        first: ``(T,)`` int64 images.
        second: ``(T,)`` int64.
        matching: options of `Matching`.

    Returns:
        ``(T,)`` in [0, 2].
    """
    vectors, units = mean_vector(regions), unit(regions)
    match = Matching(**matching)(units[first], vectors[first], units[second].unsqueeze(1), vectors[second].unsqueeze(1))
    structural = (match.plan * location_distance(match.correlation, SMOOTHING)).sum(dim=(-2, -1)).squeeze(1)
    return (structural + ((vectors[first] - vectors[second]).square().sum(dim=1) + SMOOTHING).sqrt()) / 2


def check_batch(regions: Tensor, labels: Tensor) -> None:
    """Refuse labels that are not those of the regions.

    Raises:
        ValueError: naming the shapes.
    """
    if regions.ndim != 3 or labels.shape != regions.shape[:1] or not len(labels):
        raise ValueError(
            f"regions {tuple(regions.shape)} and labels {tuple(labels.shape)} must be (B, R, D) and (B,), B >= 1"
        )
