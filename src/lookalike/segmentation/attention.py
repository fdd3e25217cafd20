"""Attention on the query and the supports of episodes.

One way asks a pair (query, support) why it is similar. Two ways ask a triplet for each class: the query, a support of
the class, and the support of the other class with the same number.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.methods.sam.attention import Network, attention_maps
from lookalike.methods.sam.masks import heat_map

BATCH = 64  # pictures, and episodes, at once


def episode_maps(query: Tensor, supports: Tensor, head: Network) -> tuple[Tensor, Tensor]:
    """Attention of B episodes of W classes with S supports each, at the size of the feature maps.

    Args:
        query: ``(B, C, h, w)`` feature maps.
        supports: ``(B, W, S, C, h, w)`` feature maps, W = 1 or 2.
        head: feature maps to unit features.

    Returns:
        For the query ``(B, W, h, w)``, the mean over the supports of maps moved to [0, 1] each; for the supports
        ``(B, W, S, h, w)`` in [0, 1]. A map without any attention is 0.

    Raises:
        ValueError: for another number of classes.

    Source: Visual Similarity Attention, section 4.3.
    Differs: the paper does not say how five supports are combined.
    """
    ways, shots = supports.shape[1:3]
    if ways not in (1, 2):
        raise ValueError(f"supports of {ways} classes, 1 or 2 are allowed")
    by_class = []
    for way in range(ways):
        of_class = []
        for shot in range(shots):
            others = [supports[:, 1 - way, shot]] if ways == 2 else []
            roles = torch.stack([query, supports[:, way, shot], *others])  # (2 or 3, B, C, h, w)
            maps = attention_maps(roles, head, "triplet" if others else "siamese_same")[:2]
            of_class.append(heat_map(maps, (maps.shape[-2], maps.shape[-1])))
        by_class.append(torch.stack(of_class))
    maps = torch.stack(by_class).permute(2, 3, 0, 1, 4, 5)  # (query and support, B, W, S, h, w)
    return maps[0].mean(dim=2), maps[1]
