"""Heads from a feature map to unit features that also give the features before normalisation.

Attention through a ``LinearHead`` needs no inner backward pass, see ``attention.attention_maps``. Any other module
that maps ``(N, C, H, W)`` to unit vectors ``(N, D)`` serves as a head, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from lookalike.models.embedder import Embedder

SMALLEST_LENGTH = 1e-12


def unit(features: Tensor) -> Tensor:
    """Rows ``(..., D)`` at length one; a row of zeros stays zero and has no gradient.

    ``torch.nn.functional.normalize`` has a gradient of 1e12 there, and a second derivative of NaN.
    """
    return features * inverse_length(features)


def inverse_length(features: Tensor) -> Tensor:
    """One over the length of each row, ``(..., 1)``; 0 where the length is below 1e-12."""
    square = features.square().sum(dim=-1, keepdim=True)
    inverse = square.clamp_min(SMALLEST_LENGTH**2).rsqrt()  # clamped, as 1 / sqrt(0) below would give NaN gradients
    return torch.where(square > SMALLEST_LENGTH**2, inverse, torch.zeros_like(inverse))


class UnitHead(nn.Module, ABC):
    """Maps ``(N, C, H, W)`` to unit features ``(N, D)``."""

    @abstractmethod
    def project(self, feature_maps: Tensor) -> Tensor:
        """Features ``(N, D)`` before normalisation."""

    def forward(self, feature_maps: Tensor) -> Tensor:
        """Unit features ``(N, D)`` of maps ``(N, C, H, W)``."""
        return unit(self.project(feature_maps))


class LinearHead(UnitHead):
    """Mean over the positions, one linear layer, L2 normalisation; at least float32, under autocast too.

    Args:
        linear: ``C`` to ``D``, with or without bias. Without one the maps before the ReLU sum to zero.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    @property
    def weight(self) -> Tensor:
        """``(D, C)``."""
        return self.linear.weight

    @property
    def bias(self) -> Tensor | None:
        """``(D,)``, ``None`` without one."""
        bias: Tensor | None = self.linear.bias
        return bias

    def project(self, feature_maps: Tensor) -> Tensor:
        """Features ``(N, D)`` before normalisation."""
        with torch.autocast(feature_maps.device.type, enabled=False):
            pooled = feature_maps.mean(dim=(-2, -1), dtype=at_least_float32(feature_maps))
            return linear_features(pooled, self.weight, self.bias)


class PoolingHead(UnitHead):
    """Any pooling of ``(N, C, H, W)``, any projection of its result to ``(N, D)``, L2 normalisation."""

    def __init__(self, pooling: Callable[[Tensor], Tensor], projection: nn.Module) -> None:
        super().__init__()
        self.pooling, self.projection = pooling, projection

    def project(self, feature_maps: Tensor) -> Tensor:
        """Features ``(N, D)`` before normalisation."""
        features: Tensor = self.projection(self.pooling(feature_maps))
        return features


class LastMap(nn.Module):
    """The last of the maps that ``lookalike.models.backbones.Trunk`` returns."""

    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk

    def forward(self, images: Tensor) -> Tensor:
        """Map ``(N, C, H, W)`` of the highest stage of images ``(N, 3, H, W)``."""
        feature_map: Tensor = self.trunk(images)[-1]
        return feature_map


def trunk_and_head(embedder: Embedder) -> tuple[LastMap, UnitHead]:
    """The two parts of an ordinary embedding model; they share its parameters.

    The head is a ``LinearHead`` where the embedder pools by the mean and has a linear layer.
    """
    # Attention through this head has a closed form.
    if embedder.pooling == "average" and isinstance(embedder.head, nn.Linear):
        return LastMap(embedder.trunk), LinearHead(embedder.head)
    return LastMap(embedder.trunk), PoolingHead(embedder.pooled, embedder.head)


def raw_features(head: Callable[[Tensor], Tensor], feature_maps: Tensor) -> Tensor:
    """Features ``(N, D)`` before normalisation.

    Raises:
        ValueError: for a head that has none.
    """
    if not isinstance(head, UnitHead):
        raise ValueError(f"features before normalisation need a UnitHead with its project(), not {type(head).__name__}")
    return head.project(feature_maps)


def linear_features(pooled: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``W g + b``, ``(..., D)``, in the wider dtype of pooled features ``(..., C)`` and layer."""
    dtype = torch.promote_types(pooled.dtype, weight.dtype)
    return nn.functional.linear(pooled.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))


def at_least_float32(tensor: Tensor) -> torch.dtype:
    """Dtype of a tensor, float32 for 16-bit ones: inner gradients of 1e-6 vanish there."""
    return torch.promote_types(tensor.dtype, torch.float32)
