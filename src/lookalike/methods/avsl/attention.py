"""Attention of the nodes of AVSL: class activation maps, their spread, and the maps of a pair.

Symbols of the paper: ``z`` feature map, ``u`` class activation map (cam), ``A, b`` weight and bias of a level's head.
A node is one embedding dimension of one level, ``r`` of them per level.

Source: Attributable Visual Similarity Learning (CVPR 2022), main text and appendix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.base.checks import require_known

Ties = Literal["first", "shared"]
MinOver = Literal["row", "map"]


def _require_maps(name: str, maps: Tensor) -> None:
    if maps.ndim != 4 or 0 in maps.shape[2:]:
        raise ValueError(f"{name} has shape {tuple(maps.shape)}, it must be (N, C, H, W) with H, W >= 1")


def linearise(z: Tensor, ties: Ties = "first") -> Tensor:
    """Part that, added to ``z``, makes the spatial mean equal to the pooled value, maximum plus mean.

    Differs: the paper shares the weight among equal maxima (``ties="shared"``), the released code keeps the first in
    row-major order. Both agree wherever a channel has one maximum, and where it is zero.

    Args:
        z: ``(N, C, H, W)`` feature maps.
        ties: which of several equal maxima carry the weight, ``first`` or ``shared``.

    Returns:
        ``(N, C, H, W)``: ``H W`` times the maximum at its position, zero elsewhere.

    Raises:
        ValueError: if ``z`` is no stack of maps or ``ties`` is unknown.
    """
    _require_maps("z", z)
    require_known("ties", ties, get_args(Ties))
    flat = z.flatten(2)  # (N, C, R)
    return _with_peaks(torch.zeros_like(flat), flat, ties).view_as(z)


def _with_peaks(start: Tensor, flat: Tensor, ties: Ties) -> Tensor:
    """``start (N, C, R)`` and on it the part that maps ``flat (N, C, R)`` lack."""
    peak, position = flat.max(dim=-1, keepdim=True)  # the first position among equals
    weight = peak * flat.shape[-1]
    if ties == "first":
        return start.scatter_add(-1, position, weight)
    equal = flat == peak
    return start + equal * (weight / equal.sum(dim=-1, keepdim=True))


def class_activation_maps(z: Tensor, weight: Tensor, bias: Tensor, ties: Ties = "first") -> Tensor:
    """Map of every node; its spatial mean is the node's embedding value exactly.

    Source: AVSL, Eq. 7 and 18, whose right side is misprinted (``v`` for the embedding). Differs: the bias stands at
    every position, as in the released code; the formula has none, and its mean would miss the bias.

    Args:
        z: ``(N, C, H, W)`` raw feature maps, not yet linearised.
        weight: ``(r, C)`` of the level's head.
        bias: ``(r,)`` of the level's head.
        ties: as in `linearise`.

    Returns:
        ``(N, r, H, W)``.

    Raises:
        ValueError: if the shapes do not belong together.
    """
    _require_maps("z", z)
    if weight.ndim != 2 or weight.shape[1] != z.shape[1]:
        raise ValueError(f"weight has shape {tuple(weight.shape)}, it must be (r, {z.shape[1]}), the channels of z")
    require_known("ties", ties, get_args(Ties))
    if bias.shape != weight.shape[:1]:
        raise ValueError(f"bias has shape {tuple(bias.shape)}, it must be ({weight.shape[0]},)")
    # A product instead of a 1x1 convolution: cuDNN would round to TF32, and the mean would miss the embedding.
    flat = z.flatten(2)  # (N, C, R)
    cams = weight @ _with_peaks(flat, flat, ties) + bias[:, None]  # (N, r, R)
    return cams.view(*cams.shape[:2], *z.shape[2:])


def normalised_maps(cams: Tensor, min_over: MinOver = "row") -> Tensor:
    """Maps shifted to a minimum of zero and scaled to a sum of one; a constant map becomes all zero.

    Differs: the paper says "normalised" only. The released code subtracts the minimum of each map row
    (``min_over="row"``), where one minimum per map (``"map"``) seems meant; it makes the statistics 2 to 40 times
    larger.

    Args:
        cams: ``(N, r, H, W)``.
        min_over: ``row`` or ``map``.

    Returns:
        ``(N, r, H, W)``, non-negative.

    Raises:
        ValueError: if ``cams`` is no stack of maps or ``min_over`` is unknown.
    """
    _require_maps("cams", cams)
    require_known("min_over", min_over, get_args(MinOver))
    shifted = cams - cams.amin(dim=-1 if min_over == "row" else (-2, -1), keepdim=True)
    return F.normalize(shifted.flatten(2), p=1, dim=-1, eps=1e-12).view(cams.shape)


def node_statistics(cams: Tensor, min_over: MinOver = "row") -> Tensor:
    """Unevenness of each node's attention: standard deviation over space of its normalised map, at the map's own size.

    Source: AVSL; the paper names the spread, the recipe is the released code's.

    Args:
        cams: ``(N, r, H, W)``.
        min_over: as in `normalised_maps`.

    Returns:
        ``(N, r)``, unbiased, at least 0; a constant map, or one of a single position, has 0.

    Raises:
        ValueError: as `normalised_maps`.
    """
    shares = normalised_maps(cams, min_over).flatten(2)  # (N, r, R)
    return shares.std(dim=-1, correction=min(1, shares.shape[-1] - 1))


def contribution_maps(contributions: Sequence[Tensor], cams: Sequence[Tensor], size: tuple[int, int]) -> Tensor:
    """One map per pair: every node's share of the distance, spread over the image as the node's own map.

    Args:
        contributions: per level ``(Q, G, r)``, sensitivity times node.
        cams: per level ``(Q, r, H, W)``, those of the images along the first axis.
        size: height and width of the result; levels are resized bilinearly.

    Returns:
        ``(Q, G, *size)``, non-negative. Larger: this place makes the pair less similar.

    Raises:
        ValueError: if levels, images or nodes do not belong together.
    """
    if len(contributions) != len(cams) or not cams:
        raise ValueError(f"{len(contributions)} levels of contributions need as many levels of cams, got {len(cams)}")
    levels = []
    for contribution, cam in zip(contributions, cams, strict=True):
        _require_maps("cams", cam)
        if contribution.ndim != 3 or (contribution.shape[0], contribution.shape[2]) != cam.shape[:2]:
            raise ValueError(
                f"contributions of shape {tuple(contribution.shape)} do not fit cams of shape {tuple(cam.shape)}"
            )
        level = torch.einsum("qgi,qihw->qghw", contribution, normalised_maps(cam, "map"))
        # The mass per place, not the sum of pixels, is kept when a coarse level is drawn on a finer grid.
        share = cam.shape[2] * cam.shape[3] / (size[0] * size[1])
        levels.append(share * F.interpolate(level, size=size, mode="bilinear", align_corners=False))
    return torch.stack(levels).sum(dim=0)
