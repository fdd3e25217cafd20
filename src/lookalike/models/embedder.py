"""An ordinary embedding: trunk, pooling, one linear layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from lookalike.models.backbones import Trunk
from lookalike.models.pooling import pool

INITIALISATIONS = ("default", "kaiming")


class Embedder(nn.Module):
    """Embeds an image by its last map, pooled over positions and projected.

    Args:
        backbone: arguments of ``Trunk``.
        pooling: a key of ``lookalike.models.pooling.POOLINGS``.
        dim: size ``D`` of the embedding; ``None`` embeds with the pooled channels themselves, without a head.
        initialisation: of the linear layer: ``default``, that of torch, or ``kaiming``: normal with fan-out mode and
            gain of a ReLU, zero bias.

    Raises:
        ValueError: for an unknown initialisation.
    """

    def __init__(
        self, backbone: Mapping[str, Any], *, pooling: str, dim: int | None, initialisation: str = "default"
    ) -> None:
        super().__init__()
        if initialisation not in INITIALISATIONS:
            raise ValueError(f"unknown initialisation {initialisation!r}; known: {', '.join(INITIALISATIONS)}")
        self.trunk = Trunk(**backbone)
        self.pooling = pooling
        channels = self.trunk.channels[-1]
        self.head = nn.Identity() if dim is None else nn.Linear(channels, dim)
        self.dim = dim or channels
        if isinstance(self.head, nn.Linear) and initialisation == "kaiming":
            nn.init.kaiming_normal_(self.head.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings ``(N, D)``, not normalised, of images ``(N, 3, H, W)``."""
        embeddings: Tensor = self.head(pool(self.trunk(images)[-1], self.pooling))
        return embeddings
