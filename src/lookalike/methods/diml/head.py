"""From a feature map to a grid of locations, their vectors, the regions, and the vector of the whole image.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.ops import roi_align

from lookalike.base.checks import require_known
from lookalike.base.tensors import unit

Pooling = Literal["resample", "roi_align", "adaptive"]

SAMPLES = 4  # per bin and direction


def grid_pool(feature_map: Tensor, side: int, mode: Pooling = "resample") -> Tensor:
    """Pool a map to ``side`` times ``side`` bins; every bin is a weighted mean of positions, its weights sum to one.

    Differs: the paper says ROI Align (``roi_align``: the box is the whole map). The released code, the default here,
    averages the positions of a bin where ``side`` divides height and width, and otherwise resamples the map to
    ``4 side`` times ``4 side`` points, corners on corners, of which it averages blocks of 4 by 4. On ResNet-50's 7 x 7
    maps the two differ by about an eighth at ``side=4``.

    Args:
        feature_map: ``(N, C, H, W)``, before or after a linear projection of the channels: both commute.
        side: the paper's G, 1 or more; S in shapes, where G is the gallery.
        mode: ``resample``, ``roi_align`` or ``adaptive`` (torch's adaptive average everywhere).

    Returns:
        ``(N, C, S, S)``.

    Raises:
        ValueError: if ``feature_map`` is no stack of maps, ``side`` is below 1 or ``mode`` is unknown.
    """
    if feature_map.ndim != 4 or 0 in feature_map.shape[2:]:
        raise ValueError(f"feature_map has shape {tuple(feature_map.shape)}, it must be (N, C, H, W) with H, W >= 1")
    if side < 1:
        raise ValueError(f"side={side} must be at least 1")
    require_known("mode", mode, get_args(Pooling))
    count, _, height, width = feature_map.shape
    if mode == "roi_align":
        boxes = feature_map.new_zeros(count, 5)  # number of the image, then left, top, right, bottom
        boxes[:, 0] = torch.arange(count)
        boxes[:, 3], boxes[:, 4] = width, height
        pooled: Tensor = roi_align(feature_map, boxes, side, sampling_ratio=SAMPLES, aligned=True)
        return pooled
    if mode == "adaptive" or (height % side == 0 and width % side == 0):
        return F.adaptive_avg_pool2d(feature_map, side)
    # SAMPLES points per bin and direction, and their mean.
    points = F.interpolate(feature_map, size=(SAMPLES * side,) * 2, mode="bilinear", align_corners=True)
    return F.avg_pool2d(points, SAMPLES)


def project(feature_map: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The embedding's linear layer at every position: ``(N, C, H, W)`` to ``(N, D, H, W)``, not normalised.

    Args:
        feature_map: ``(N, C, H, W)``.
        weight: ``(D, C)``.
        bias: ``(D,)`` or ``None``.

    Raises:
        ValueError: if the shapes do not belong together.
    """
    if feature_map.ndim != 4 or weight.ndim != 2 or weight.shape[1] != feature_map.shape[1]:
        raise ValueError(
            f"feature_map {tuple(feature_map.shape)} and weight {tuple(weight.shape)} must be (N, C, H, W) and (D, C)"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias has shape {tuple(bias.shape)}, it must be ({weight.shape[0]},)")
    # A product instead of a 1x1 convolution: cuDNN would round to TF32, and the mean would miss the embedding.
    z = weight @ feature_map.flatten(2)  # (N, D, H W)
    z = z if bias is None else z + bias.unsqueeze(1)
    return z.reshape(-1, *weight.shape[:1], *feature_map.shape[2:])


def grid_regions(z: Tensor, side: int, pooling: Pooling = "resample") -> Tensor:
    """Regions of a projected map, row by row: ``(N, D, H, W)`` to ``(N, R, D)``, not normalised.

    Raises:
        ValueError: as `grid_pool`.
    """
    return grid_pool(z, side, pooling).flatten(2).mT  # (N, D, R) to (N, R, D)


def mean_vector(regions: Tensor) -> Tensor:
    """Global vector of a network trained with DIML: unit mean of the regions ``(N, R, D)``, before they are units.

    Not that of any other network, the unit projection of the mean position: resampling weighs positions unevenly.
    Differs: the paper calls both the mean over all positions.

    Returns:
        ``(N, D)``.
    """
    return unit(regions.mean(dim=-2))
