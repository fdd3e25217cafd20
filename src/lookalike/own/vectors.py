"""One vector per image of any model, so that an index of any library searches as the model compares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.methods.avsl.head import LevelHead, average_max_pool
from lookalike.methods.avsl.model import AVSL, select_stages
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.retrieval import fixed_error, fixed_weights
from lookalike.methods.avsl.scoring import weighted_vectors
from lookalike.methods.diml.head import mean_vector
from lookalike.methods.diml.model import LocatedEmbedder
from lookalike.own.index import Tensors
from lookalike.tensors import unit

INNER_PRODUCT, SQUARED_DISTANCE = "inner product", "squared distance"
COSINE = "cosine"


@dataclass(frozen=True)
class Vectors:
    """How a model's images become vectors.

    Attributes:
        network: images ``(N, 3, H, W)`` to vectors ``(N, D)``, in evaluation mode.
        measure: how two are compared: ``inner product`` or ``squared distance``.
        says: what that is of the model's own way of comparing.
        kept: from what an index keeps of N pictures, by ``way``, to the same vectors ``(N, D)``.
        certificate: by name, what is proven of it; empty where it is the model's own measure.
    """

    network: nn.Module
    measure: str
    says: str
    kept: Callable[[Tensors], Tensor]
    certificate: dict[str, Any]


class UnitVectors(nn.Module):
    """Embeddings of length 1.

    Args:
        network: an ``Embedder``, or one with the regions of its map, whose whole image's vector is taken.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Vectors ``(N, D)`` of images ``(N, 3, H, W)``."""
        if not isinstance(self.network, LocatedEmbedder):
            return unit(self.network(images))
        if self.network.global_vector == "embedding":  # of which the regions are no part
            return unit(self.network.embedder(images))
        return mean_vector(self.network.regions(images))  # not `represent`, which looks at the number of images


class WeightedLevels(nn.Module):
    """The unit vectors of AVSL's levels, each node times the root of its weight.

    Args:
        network: the model.
        weights: per level ``(r,)``.
    """

    def __init__(self, network: AVSL, weights: list[Tensor]) -> None:
        super().__init__()
        self.network = network
        self.roots = nn.ParameterList(
            nn.Parameter(each.detach().sqrt().float(), requires_grad=False) for each in weights
        )

    def forward(self, images: Tensor) -> Tensor:
        """Vectors ``(N, L r)`` of images ``(N, 3, H, W)``."""
        stages = select_stages(self.network.backbone(images), self.network.levels)
        levels = [
            F.linear(average_max_pool(stage), cast(LevelHead, head).weight, cast(LevelHead, head).bias)
            for head, stage in zip(self.network.heads, stages, strict=True)
        ]
        return torch.cat([unit(each) * root for each, root in zip(levels, self.roots, strict=True)], dim=1)


def vectors_of(network: nn.Module, seen: Tensors | None) -> Vectors:
    """How a model's images become vectors.

    Args:
        network: an ``Embedder``, ``DIML`` or ``AVSL``.
        seen: of an ``AVSL``, what an index keeps of pictures: its weights are fixed at their mean statistics.

    Raises:
        ValueError: for an ``AVSL`` that compares over its graph, without pictures.
    """
    if not isinstance(network, AVSL):
        located = isinstance(network, LocatedEmbedder)
        says = (
            "cosine of whole images; structural matching, which compares regions, is not in it" if located else COSINE
        )
        return Vectors(UnitVectors(network).eval(), INNER_PRODUCT, says, lambda kept: kept["embedding"], {})
    if network.variant in ("top", "concat"):
        first = len(network.levels) - 1 if network.variant == "top" else 0
        weights = [torch.full_like(network.alpha[0].detach(), level >= first) for level in range(len(network.levels))]
        return _weighted(network, weights, "the model's distance", {})
    if seen is None:
        raise ValueError(
            "an AVSL model's weights depend on the pair; for an export they are fixed at the mean statistics of "
            "pictures: --in FOLDER names them"
        )
    statistics = Representation.from_state(seen).statistics
    parameters: dict[str, Any] = {"alpha": [None, *network.alpha], "beta": [None, *network.beta]}
    parameters |= {"edges": network.edges(), "scale": network.sigmoid_scale}
    with torch.no_grad():
        weights = fixed_weights(statistics, **parameters)
        error = fixed_error(statistics, statistics, weights, **parameters)
    certificate = {
        "pictures": len(statistics[0]),
        "relative_error": error if math.isfinite(error) else None,
        "says": "no distance between two of these pictures is off by more than this share of its exact value "
        "(null: none is proven); nothing is proven of other pictures",
    }
    return _weighted(network, weights, "distance with each node's weight at the mean statistics", certificate)


def _weighted(network: AVSL, weights: list[Tensor], says: str, certificate: dict[str, Any]) -> Vectors:
    def kept(tensors: Tensors) -> Tensor:
        return weighted_vectors(Representation.from_state(tensors), weights).float()

    return Vectors(WeightedLevels(network, weights).eval(), SQUARED_DISTANCE, says, kept, certificate)
