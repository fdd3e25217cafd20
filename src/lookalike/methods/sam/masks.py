"""From attention maps to masks of the image."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.base.checks import require_known
from lookalike.methods.sam.head import at_least_float32

SMALLEST_RANGE = 1e-8
ROUNDING = 8  # units in the last place by which upsampling can spread equal values


def by_minmax(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Lowest value and range, which move each map to [0, 1]; a constant one, of infinite range, to 0."""
    # Several pixels with the extreme value are copies of one cell, or zeros, which the ReLU before gives no gradient:
    # any of them carries the right one. Taking one is much cheaper than amin and amax, which share it among all.
    values = maps.flatten(-2)
    lowest, highest = values.min(dim=-1).values[..., None, None], values.max(dim=-1).values[..., None, None]
    span = highest - lowest
    # Upsampled in float32 a constant map of 0.3 has a range of 6e-8, which normalising would blow up to 0.9.
    constant = span <= ROUNDING * torch.finfo(maps.dtype).eps * highest
    return lowest, torch.where(constant, math.inf, span + SMALLEST_RANGE)


def by_maximum(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Zero and the maximum, which keep the zeros of each map; one of zeros stays so."""
    highest = maps.flatten(-2).max(dim=-1).values[..., None, None]
    return torch.zeros_like(highest), highest + SMALLEST_RANGE


def as_it_is(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Zero and one."""
    one = maps.new_ones(())
    return torch.zeros_like(one), one


# Offset and range of each map (..., H, W): (map - offset) / range is the normalised one.
NORMALISATIONS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "minmax": by_minmax,
    "max": by_maximum,
    "none": as_it_is,
}


def upsample(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """Maps ``(..., h, w)`` resized bilinearly with half-pixel centres to ``(..., H, W)``, at least float32.

    Raises:
        ValueError: if ``size`` is not two numbers from 1 on, or there is no map.
    """
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"size={tuple(size)} must be two numbers of pixels, each at least 1")
    if maps.ndim < 2 or 0 in maps.shape[-2:]:
        raise ValueError(f"maps have shape {tuple(maps.shape)}, (..., h, w) with h, w >= 1 is needed")
    stack = maps.to(at_least_float32(maps)).reshape(-1, 1, *maps.shape[-2:])
    return F.interpolate(stack, size=tuple(size), mode="bilinear", align_corners=False).view(*maps.shape[:-2], *size)


def heat_map(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """Maps ``(..., h, w)`` upsampled and each moved to [0, 1], ``(..., H, W)``, to be looked at.

    Raises:
        ValueError: as ``upsample``.
    """
    maps = upsample(maps, size)
    lowest, span = by_minmax(maps)
    return (maps - lowest) / span


def soft_mask(
    maps: Tensor, size: tuple[int, int], *, alpha: float = 10.0, beta: float = 0.5, normalise: str = "minmax"
) -> Tensor:
    """Degree of erasure of each pixel: ``sigmoid(alpha (map - beta))`` of the upsampled, normalised map.

    Args:
        maps: ``(..., h, w)``, not negative.
        size: height and width of the image.
        alpha: slope, above 0; from about 100 on the mask has no useful gradient.
        beta: value of the normalised map at which a pixel is half erased.
        normalise: how each map is scaled after upsampling: ``minmax`` to [0, 1], ``max`` by its maximum, ``none``.

    Returns:
        ``(..., H, W)`` in (0, 1), at least float32; ``sigmoid(-alpha beta)`` everywhere for a map of zeros.

    Raises:
        ValueError: for maps, a size, a slope or a normalisation that is not as above.

    Source: Visual Similarity Attention, section 3.
    Differs: the paper gives neither constants nor a normalisation, and the raw maps are too small to do without. The
    constants are those of guided attention (GAIN, CVPR 2018) in its public implementations.
    """
    require_mask(alpha, normalise)
    maps = upsample(maps, size)
    offset, span = NORMALISATIONS[normalise](maps)
    return torch.sigmoid((maps - offset) * (alpha / span) - alpha * beta)


def require_mask(alpha: float, normalise: str) -> None:
    """Refuse a slope or a normalisation that ``soft_mask`` does not take, with a ``ValueError``."""
    require_known("normalise", normalise, NORMALISATIONS)
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha={alpha} must be above 0 and finite")
