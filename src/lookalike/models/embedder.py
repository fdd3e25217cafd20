"""An ordinary embedding: trunk, pooling, one linear layer; or one layer for each of several stripes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.models.backbones import Trunk
from lookalike.models.timm_trunk import build_trunk

SMALLEST_ACTIVATION = 1e-6  # released code of the contextual loss; keeps the root of the mean differentiable
INITIALISATIONS = ("default", "kaiming")
STRIPES = "stripes"  # the pooling that needs a number of parts


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

    Source: Radenovic et al. 2019 (GeM), power 3. Differs: the power is not learned, as in Contextual's released code.
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
        backbone: arguments of `lookalike.models.timm_trunk.build_trunk`, or a trunk.
        pooling: a key of `POOLINGS`, or ``stripes``.
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
        self.trunk = backbone if isinstance(backbone, Trunk) else build_trunk(**backbone)
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
        """Input of the head from a map ``(N, C, H, W)``: ``(N, C)``, or of stripes ``(N, parts, C)``."""
        return pool(feature_map, self.pooling) if self.parts is None else stripe_pool(feature_map, self.parts)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings ``(N, D)``, not normalised, of images ``(N, 3, H, W)``."""
        embeddings: Tensor = self.head(self.pooled(self.trunk(images)[-1]))
        return embeddings


def _head(channels: int, dim: int | None, parts: int | None) -> nn.Module:
    if dim is None:
        return nn.Identity()
    return nn.Linear(channels, dim) if parts is None else StripeHead(channels, dim, parts)
