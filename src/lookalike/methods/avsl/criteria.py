"""The two losses that AVSL applies to a distance matrix.

Source: Attributable Visual Similarity Learning (CVPR 2022); the numbers are the released code's.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from lookalike.checks import require_known, require_range
from lookalike.tensors import log_one_plus_sum_exp

Average = Literal["pooled", "separate"]


def proxy_anchor_loss(
    distance: Tensor,
    labels: Tensor,
    proxy_labels: Tensor,
    *,
    scale: float = 16.0,
    positive_margin: float = 1.8,
    negative_margin: float = 2.2,
) -> Tensor:
    """Pull images towards the proxies of their class and push them from the others.

    Source: AVSL's distance form of Proxy Anchor. Differs: the scale is the 16 of the published command lines, not the
    32 of the released configuration file.

    Args:
        distance: ``(N, P)`` of images to proxies.
        labels: ``(N,)`` int64.
        proxy_labels: ``(P,)`` int64.
        scale: factor of the exponents.
        positive_margin: distance below which a positive counts little.
        negative_margin: distance above which a negative counts little.

    Returns:
        Scalar: mean over the proxies with a positive in the batch (0 without any), plus mean over all proxies.

    Raises:
        ValueError: if the shapes do not belong together or there is no proxy.
    """
    if distance.ndim != 2 or distance.shape[1] == 0:
        raise ValueError(f"distance has shape {tuple(distance.shape)}, it must be (N, P) with P >= 1")
    if labels.shape != distance.shape[:1] or proxy_labels.shape != distance.shape[1:]:
        raise ValueError(
            f"labels {tuple(labels.shape)} and proxy_labels {tuple(proxy_labels.shape)} must be "
            f"({distance.shape[0]},) and ({distance.shape[1]},), the sides of distance"
        )
    positive = labels[:, None] == proxy_labels
    pull = log_one_plus_sum_exp(scale * (distance - positive_margin), positive, dim=0)  # (P,)
    push = log_one_plus_sum_exp(scale * (negative_margin - distance), ~positive, dim=0)
    return pull.sum() / positive.any(dim=0).sum().clamp(min=1) + push.mean()


def margin_loss(
    distance: Tensor,
    triplets: Tensor,
    labels: Tensor,
    boundary: Tensor,
    *,
    margin: float = 0.2,
    average: Average = "pooled",
) -> Tensor:
    """Keep positives ``margin`` inside and negatives ``margin`` outside the boundary of the anchor's class.

    Source: AVSL's margin loss (its text has boundary 1.2 and margin 0.2 swapped). Differs: as in the released code the
    hinges of positives and negatives are pooled and averaged over those above 0; ``average="separate"`` is the paper:
    the mean over all positives plus the mean over all negatives. Without any hinge above 0 the loss is 0, where the
    released code divides by zero.

    Args:
        distance: ``(N, N)``, squared Euclidean in AVSL.
        triplets: ``(T, 3)`` int64 rows of anchor, positive, negative.
        labels: ``(N,)`` int64.
        boundary: ``(classes,)``, learnable.
        margin: half the width of the band to keep free.
        average: ``pooled`` or ``separate``.

    Returns:
        Scalar, 0 without triplets.

    Raises:
        ValueError: if the shapes do not belong together, a triplet names no image, a label has no boundary, or
            ``average`` is unknown.
    """
    require_known("average", average, get_args(Average))
    count = len(labels)
    if labels.ndim != 1 or distance.shape != (count, count):
        raise ValueError(f"distance has shape {tuple(distance.shape)}, it must be ({count}, {count}) as labels")
    if triplets.ndim != 2 or triplets.shape[1] != 3:
        raise ValueError(f"triplets has shape {tuple(triplets.shape)}, it must be (T, 3)")
    if boundary.ndim != 1:
        raise ValueError(f"boundary has shape {tuple(boundary.shape)}, it must be (classes,)")
    require_range("triplets", triplets, count)
    require_range("labels", labels, len(boundary))
    anchor, positive, negative = triplets.unbind(dim=1)
    limit = boundary[labels[anchor]]
    pull = (distance[anchor, positive] - limit + margin).relu()
    push = (limit + margin - distance[anchor, negative]).relu()
    if average == "separate":
        return (pull.sum() + push.sum()) / max(len(triplets), 1)
    hinges = torch.cat([pull, push])
    return hinges.sum() / (hinges > 0).sum().clamp(min=1)
