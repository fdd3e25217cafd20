"""From a feature map to the vectors of its locations, the regions, and the vector of the whole image.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3.
"""

from __future__ import annotations

from torch import Tensor

from lookalike.methods.diml.pooling import Pooling, grid_pool
from lookalike.tensors import unit


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
    return grid_pool(z, side, pooling).flatten(2).mT


def mean_vector(regions: Tensor) -> Tensor:
    """Global vector of a network trained with DIML: unit mean of the regions ``(N, R, D)``, before they are units.

    Not that of any other network, the unit projection of the mean position: resampling weighs positions unevenly.
    Differs: the paper calls both the mean over all positions.

    Returns:
        ``(N, D)``.
    """
    return unit(regions.mean(dim=-2))
