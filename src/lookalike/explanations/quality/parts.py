"""Part agreement: whether the maps of both images stress the same parts.

A part's value is that of the map where it lies. Those of the parts that both images of a pair show are compared by
their ranks. Maps of any two such pictures may agree, say if a head always stands out; a table therefore shows the
agreement of pairs less that of the same queries, explained anew, with random partners.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.explanations.quality.annotations import Parts
from lookalike.explanations.quality.pooled import require_maps
from lookalike.explanations.quality.ranks import spearman

FEWEST = 5  # parts that both must show


def part_agreement(maps: tuple[Tensor, Tensor], parts: tuple[Parts, Parts], fewest: int = FEWEST) -> Tensor:
    """Spearman's correlation of what both maps of a pair say of the parts that both images show.

    Args:
        maps: of first and second images, each ``(N, h, w)`` on the grid that all methods share.
        parts: of both.
        fewest: parts of a pair that counts.

    Returns:
        ``(N,)`` float64 in [-1, 1]; NaN with fewer parts, or where a map says the same of all.

    Raises:
        ValueError: for maps and parts that do not belong together, or ``fewest`` below 2.
    """
    if fewest < 2:
        raise ValueError(f"fewest={fewest} must be at least 2: fewer values have no order")
    first, second = (values_of_parts(*each) for each in zip(maps, parts, strict=True))
    both = parts[0].visible & parts[1].visible
    return spearman(first, second, both).masked_fill(both.sum(dim=1) < fewest, torch.nan)


def values_of_parts(maps: Tensor, parts: Parts) -> Tensor:
    """What each map says of each part, between the centres of cells bilinearly.

    Args:
        maps: ``(N, h, w)``.
        parts: of the N images.

    Returns:
        ``(N, K)`` float32, so that equal places stay equal; of hidden parts any finite number.

    Raises:
        ValueError: for another number of maps than images, or maps that are none.
    """
    require_maps("maps", maps)
    if len(maps) != len(parts.points):
        raise ValueError(f"{len(parts.points)} images need a map each, not {len(maps)}")
    height, width = parts.size
    places = 2 * parts.points.double() / parts.points.new_tensor([width, height]).double() - 1  # from -1 to 1
    found = F.grid_sample(maps.double()[:, None], places[:, None], padding_mode="border", align_corners=False)
    return found[:, 0, 0].float()
