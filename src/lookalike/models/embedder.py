"""An ordinary embedding: trunk, pooling, one linear layer; or one layer for each of several stripes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.models.backbones import Trunk
from lookalike.models.pooling import pool, stripe_pool

INITIALISATIONS = ("default", "kaiming")
STRIPES = "stripes"  # the pooling that needs a number of parts


class StripeHead(nn.Module):
    """Embeds each stripe of a map by layers of its own: linear, batch norm, ReLU.

    Args:
        channels: ``C`` of the map.
        dim: size ``D`` of the embedding.
        parts: number of stripes, each of which fills ``D / parts`` dimensions.

    Raises:
        ValueError: if the stripes cannot share the dimensions evenly.

    Source: Sun et al. 2018 (PCB), six parts of 256. Layers without a bias, which the batch norm would cancel.
    """

    def __init__(self, channels: int, dim: int, parts: int) -> None:
        super().__init__()
        if parts < 1 or dim % parts:
            raise ValueError(f"dim={dim} must be a multiple of parts={parts}, which must be at least 1")
        size = dim // parts
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Linear(channels, size, bias=False), nn.BatchNorm1d(size), nn.ReLU()) for _ in range(parts)
        )

    def forward(self, stripes: Tensor) -> Tensor:
        """Embeddings ``(N, D)`` of pooled stripes ``(N, parts, C)``, one part after the other."""
        return torch.cat([part(stripe) for part, stripe in zip(self.parts, stripes.unbind(1), strict=True)], dim=1)


class Embedder(nn.Module):
    """Embeds an image by its last map, pooled over positions and projected.

    Args:
        backbone: arguments of ``Trunk``, or a trunk.
        pooling: a key of ``lookalike.models.pooling.POOLINGS``, or ``stripes``.
        dim: size ``D`` of the embedding; ``None`` embeds with the pooled channels themselves, without a head.
        initialisation: start of the linear layers: ``default``, that of torch, or ``kaiming``: normal with fan-out mode
            and gain of a ReLU, zero bias.
        parts: number of stripes, for ``stripes`` alone; the head is a ``StripeHead`` then.

    Raises:
        ValueError: for an unknown initialisation, stripes without their number or a size, or a number without stripes.
    """

    def __init__(
        self,
        backbone: Mapping[str, Any] | Trunk,
        *,
        pooling: str,
        dim: int | None,
        initialisation: str = "default",
        parts: int | None = None,
    ) -> None:
        super().__init__()
        require_known("initialisation", initialisation, INITIALISATIONS)
        if (pooling == STRIPES) != (parts is not None):
            raise ValueError(f"parts={parts} with pooling {pooling!r}: {STRIPES!r} needs a number, others take none")
        if parts is not None and dim is None:
            raise ValueError(f"pooling {pooling!r} needs a dim, a multiple of parts={parts}, not {dim}")
        self.trunk = backbone if isinstance(backbone, Trunk) else Trunk(**backbone)
        self.pooling, self.parts = pooling, parts
        channels = self.trunk.channels[-1]
        self.head = _head(channels, dim, parts)
        self.dim = dim or channels
        if initialisation == "kaiming":
            for layer in self.head.modules():
                if isinstance(layer, nn.Linear):
                    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                    if layer.bias is not None:
                        nn.init.zeros_(layer.bias)

    def pooled(self, feature_map: Tensor) -> Tensor:
        """What the head takes of a map ``(N, C, H, W)``: ``(N, C)``, or of stripes ``(N, parts, C)``."""
        return pool(feature_map, self.pooling) if self.parts is None else stripe_pool(feature_map, self.parts)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings ``(N, D)``, not normalised, of images ``(N, 3, H, W)``."""
        embeddings: Tensor = self.head(self.pooled(self.trunk(images)[-1]))
        return embeddings


def _head(channels: int, dim: int | None, parts: int | None) -> nn.Module:
    if dim is None:
        return nn.Identity()
    return nn.Linear(channels, dim) if parts is None else StripeHead(channels, dim, parts)
