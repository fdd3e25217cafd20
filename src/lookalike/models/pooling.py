"""From a map to one vector: what embedding models do with the positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lookalike.checks import require_known

SMALLEST_ACTIVATION = 1e-6  # released code of the contextual loss; keeps the root of the mean differentiable


def average_pool(feature_map: Tensor) -> Tensor:
    """Mean over the positions, ``(N, C, H, W)`` to ``(N, C)``."""
    return F.adaptive_avg_pool2d(feature_map, 1).flatten(1)


def max_pool(feature_map: Tensor) -> Tensor:
    """Maximum over the positions, ``(N, C)``."""
    return feature_map.amax(dim=(2, 3))


def average_max_pool(feature_map: Tensor) -> Tensor:
    """Sum of mean and maximum, ``(N, C)``, as Proxy Anchor pools."""
    return average_pool(feature_map) + max_pool(feature_map)


def gem_pool(feature_map: Tensor, power: float = 3.0) -> Tensor:
    """Generalised mean over the positions, ``(mean x^power)^(1 / power)``.

    Args:
        feature_map: ``(N, C, H, W)``; values below ``1e-6`` are raised to it.
        power: 1 is the mean, infinity the maximum.

    Returns:
        ``(N, C)``, at least float32: the cube of a small activation is 0 in 16 bits.
    """
    activations = _precise(feature_map).clamp(min=SMALLEST_ACTIVATION)
    return activations.pow(power).mean(dim=(2, 3)).pow(1 / power)


def max_layer_norm_pool(feature_map: Tensor) -> Tensor:
    """Maximum over the positions, then the channels brought to mean 0 and variance 1; ``(N, C)``, at least float32.

    Source: Supervised Metric Learning to Rank, appendix G. Differs: as in the released code, the normalisation
    follows the pooling and has no affine parameters.
    """
    maxima = _precise(feature_map).amax(dim=(2, 3))
    return F.layer_norm(maxima, maxima.shape[1:])


def stripe_pool(feature_map: Tensor, parts: int) -> Tensor:
    """Mean over each of several horizontal stripes, from top to bottom.

    Args:
        feature_map: ``(N, C, H, W)``.
        parts: stripes of equal height. Where they do not divide ``H``, neighbours share a row.

    Returns:
        ``(N, parts, C)``.

    Raises:
        ValueError: for fewer rows than stripes.

    Source: Sun et al. 2018 (PCB), six stripes of a map of 24 rows.
    """
    if not 1 <= parts <= feature_map.shape[2]:
        raise ValueError(f"parts={parts} is outside [1, {feature_map.shape[2]}], the rows of the map")
    return F.adaptive_avg_pool2d(feature_map, (parts, 1)).squeeze(3).mT


POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "average": average_pool,
    "max": max_pool,
    "average_max": average_max_pool,
    "gem": gem_pool,
    "max_layer_norm": max_layer_norm_pool,
}


def pool(feature_map: Tensor, pooling: str) -> Tensor:
    """Pool a map ``(N, C, H, W)`` over its positions to ``(N, C)``.

    Raises:
        ValueError: for an unknown pooling.
    """
    require_known("pooling", pooling, POOLINGS)
    return POOLINGS[pooling](feature_map)


def _precise(feature_map: Tensor) -> Tensor:
    return feature_map.to(torch.promote_types(feature_map.dtype, torch.float32))
