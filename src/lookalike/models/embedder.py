"""An ordinary embedding: trunk, pooling, one linear layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.models.backbones import Trunk


class Embedder(nn.Module):
    """Embeds an image by its last map, pooled over positions and projected.

    Args:
        backbone: arguments of ``Trunk``.
        pooling: ``average``, ``max``, or ``average_max`` (their sum).
        dim: size ``D`` of the embedding; ``None`` embeds with the pooled channels themselves, without a head.
    """

    def __init__(self, backbone: Mapping[str, Any], *, pooling: str, dim: int | None) -> None:
        super().__init__()
        self.trunk = Trunk(**backbone)
        self.pooling = pooling
        channels = self.trunk.channels[-1]
        self.head = nn.Identity() if dim is None else nn.Linear(channels, dim)
        self.dim = dim or channels

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings ``(N, D)``, not normalised, of images ``(N, 3, H, W)``."""
        embeddings: Tensor = self.head(pool(self.trunk(images)[-1], self.pooling))
        return embeddings


def pool(feature_map: Tensor, pooling: str) -> Tensor:
    """Pool a map ``(N, C, H, W)`` over its positions to ``(N, C)``.

    Raises:
        ValueError: for an unknown pooling.
    """
    average = F.adaptive_avg_pool2d(feature_map, 1).flatten(1)
    if pooling == "average":
        return average
    largest = feature_map.amax(dim=(2, 3))
    if pooling == "max":
        return largest
    if pooling == "average_max":
        return average + largest
    raise ValueError(f"unknown pooling {pooling!r}; known: average, max, average_max")
