"""Where two images resemble each other: the marginals of a pair as heat maps.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Fig. 5.
"""

from __future__ import annotations

from math import isqrt

from torch import Tensor
from torch.nn import functional as F


def heat_maps(marginal: Tensor, size: tuple[int, int]) -> Tensor:
    """Marginals spread over the image, enlarged bilinearly.

    Args:
        marginal: ``(..., R)`` of a square grid, row by row.
        size: height and width of the result.

    Returns:
        ``(..., *size)``, with the sum of the marginal where ``size`` is a multiple of the grid.

    Raises:
        ValueError: if R is no square number, or a size is below 1.
    """
    side = isqrt(marginal.shape[-1])
    if side**2 != marginal.shape[-1] or side == 0:
        raise ValueError(f"{marginal.shape[-1]} locations are no square grid")
    if min(size) < 1:
        raise ValueError(f"size={size} must be at least 1 in both directions")
    grid = marginal.reshape(-1, 1, side, side)
    enlarged = F.interpolate(grid, size=size, mode="bilinear", align_corners=False)
    return enlarged.view(*marginal.shape[:-1], *size) * (side**2 / (size[0] * size[1]))
