"""Edges of AVSL's graph: how much a node's map agrees with the maps of the level below.

Symbols of the paper: ``omega`` the running state of the edges, ``W~`` the normalised edges used in the distance.
Rows are the upper level's nodes, columns the lower level's.

Source: Attributable Visual Similarity Learning (CVPR 2022); the details are the released code's.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def batch_edges(upper_cams: Tensor, lower_cams: Tensor) -> Tensor:
    """Mean over the batch of the cosine between each upper and each lower map.

    Differs: the paper resizes both maps to the smaller height and width and does not say how; as in the released code
    the lower map is average-pooled to the upper's size. Bias is included, no minimum is subtracted.

    Args:
        upper_cams: ``(N, r, H, W)``.
        lower_cams: ``(N, r', H', W')`` of the same images, one level below.

    Returns:
        ``(r, r')`` in [-1, 1].

    Raises:
        ValueError: if the maps are not of the same images.
    """
    if upper_cams.ndim != 4 or lower_cams.ndim != 4 or len(upper_cams) != len(lower_cams) or not len(upper_cams):
        raise ValueError(
            f"upper_cams {tuple(upper_cams.shape)} and lower_cams {tuple(lower_cams.shape)} must be (N, r, H, W) "
            "of the same N >= 1 images"
        )
    pooled = F.adaptive_avg_pool2d(lower_cams, (upper_cams.shape[2], upper_cams.shape[3]))
    upper, lower = (F.normalize(cams.flatten(2), dim=-1, eps=1e-12) for cams in (upper_cams, pooled))  # (N, r, R)
    return torch.einsum("nip,njp->ij", upper, lower) / len(upper)


def update_edges(state: Tensor | None, batch: Tensor, momentum: float) -> Tensor:
    """Running edges after one more batch: ``momentum * state + (1 - momentum) * batch``.

    Args:
        state: ``(r, r)``, or ``None`` before the first batch, which is then copied.
        batch: ``(r, r)`` edges of the batch.
        momentum: share of the old state, in [0, 1]; 0 keeps the last batch only.

    Returns:
        ``(r, r)``, a new tensor.

    Raises:
        ValueError: if ``momentum`` is outside [0, 1] or the shapes differ.
    """
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum={momentum} is outside [0, 1]")
    if state is None:
        return batch.clone()
    if state.shape != batch.shape:
        raise ValueError(f"state has shape {tuple(state.shape)}, it must be {tuple(batch.shape)} as the batch's edges")
    return momentum * state + (1 - momentum) * batch


def relative_change(before: Tensor, after: Tensor) -> Tensor:
    """By how much edges changed, ``(...)``: mean of ``|after - before|`` over the mean of ``|after|``.

    Source: AVSL, Fig. 9. Differs: the paper plots the fluctuation of edges and does not say how it is measured.

    Args:
        before: ``(..., r, r')``.
        after: ``(..., r, r')``.

    Raises:
        ValueError: if the shapes differ.
    """
    if before.shape != after.shape:
        raise ValueError(f"before has shape {tuple(before.shape)}, it must be {tuple(after.shape)} as after")
    size = after.abs().mean(dim=(-2, -1)).clamp_min(torch.finfo(after.dtype).tiny)
    return (after - before).abs().mean(dim=(-2, -1)) / size


def normalise_edges(state: Tensor, k: int) -> Tensor:
    """Edges as used in the distance: per upper node the ``k`` strongest positive ones, scaled to a sum of one.

    Differs: the paper keeps exactly ``k``; the released code keeps all within 1e-8 of the ``k``-th, so that exact ties
    stay together, and adds 1e-8 to the row sum. Negative edges are cut, which the paper's range [0, 1] implies.

    Args:
        state: ``(r, r')``.
        k: edges kept per row, ``1 <= k <= r'``.

    Returns:
        ``(r, r')``, non-negative; a row without a positive edge is all zero.

    Raises:
        ValueError: if ``state`` is no matrix or ``k`` is outside ``[1, r']``.
    """
    if state.ndim != 2:
        raise ValueError(f"state has shape {tuple(state.shape)}, it must be (r, r')")
    if not 1 <= k <= state.shape[1]:
        raise ValueError(f"k={k} is outside [1, {state.shape[1]}], the nodes of the lower level")
    positive = state.clamp(min=0)
    weakest = positive.topk(k, dim=1).values[:, -1:]  # (r, 1)
    kept = positive * (positive >= weakest - 1e-8)
    return kept / (kept.sum(dim=1, keepdim=True) + 1e-8)
