"""DIML around a trained embedder: images in, representations out, similarities, rankings and explanations.

Feature map and linear layer are read out of any trained embedder, see `find_projection`.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack, cast, get_args

import torch
from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.base.tensors import unit
from lookalike.methods.diml.head import Pooling, grid_regions, mean_vector, project
from lookalike.methods.diml.matcher import MatcherOptions, StructuralMatcher
from lookalike.methods.diml.representation import Explanation, Representation

GlobalVector = Literal["embedding", "locations"]


def find_projection(embedder: nn.Module, feature_layer: str) -> str:
    """Name of the only linear layer that was registered after ``feature_layer``.

    Where a network has none, that of its only ``nn.Identity`` there, as people write a network without a head: its
    features are embeddings as they are.

    Raises:
        ValueError: if there is no such layer, or neither exactly one linear one nor one identity after it.
    """
    names: list[str] = [name for name, _ in embedder.named_modules()]
    require_known("feature_layer", feature_layer, names[1:])
    # In order of registration, which in an ordinary network is that of the calls.
    after = [name for name in names[names.index(feature_layer) + 1 :] if not name.startswith(f"{feature_layer}.")]
    linear = [name for name in after if isinstance(embedder.get_submodule(name), nn.Linear)]
    without_head = [name for name in after if isinstance(embedder.get_submodule(name), nn.Identity)]
    if len(linear) == 1:
        return linear[0]
    if not linear and len(without_head) == 1:
        return without_head[0]
    raise ValueError(f"linear layers after {feature_layer!r} are {linear}, not one: give it as projection")


def embed_with_map(embedder: nn.Module, feature_layer: str, images: Tensor) -> tuple[Tensor, Tensor]:
    """Embeddings of images, and the maps that a layer gives on the way.

    A layer may return several maps, as a sequence or a mapping; the last counts. So does the last call of a layer that
    is used more than once.

    Returns:
        Embeddings ``(N, D)``, not normalised, and feature map ``(N, C, H, W)``.

    Raises:
        ValueError: if the layer was not called (a traced network may pass over it), or gave no stack of maps.
    """
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        maps = list(output.values()) if isinstance(output, Mapping) else output
        seen[:] = [maps if isinstance(maps, Tensor) else maps[-1]]

    handle = embedder.get_submodule(feature_layer).register_forward_hook(keep)
    try:
        embeddings: Tensor = embedder(images)
    finally:
        handle.remove()
    if not seen:
        raise ValueError(f"feature_layer={feature_layer!r} was not called by the embedder, choose one that is")
    if seen[0].ndim != 4:
        raise ValueError(f"feature_layer={feature_layer!r} gives shape {tuple(seen[0].shape)}, not maps (N, C, H, W)")
    return embeddings, seen[0]


class LocatedEmbedder(nn.Module):
    """Any embedder whose last layers are a pooling and a linear map, with the regions of its last map.

    `lookalike.methods.diml.matcher.StructuralMatcher` compares what it gives; `DIML` does both.

    Args:
        embedder: ``(N, 3, H, W)`` images to ``(N, D)`` embeddings, of any length.
        feature_layer: name of the module that gives the last feature map; for `lookalike.models.embedder.Embedder`
            it is ``trunk``.
        side: G, side of the grid of locations.
        projection: linear layer applied at every position, or ``nn.Identity()`` where the features themselves are the
            locations; by default what `find_projection` finds after the feature layer.
        global_vector: ``embedding``, what the embedder returns, for networks trained in any other way; ``locations``,
            the mean of the regions, for networks trained with DIML.
        pooling: how the grid is pooled: ``resample``, ``roi_align`` or ``adaptive``, see `grid_pool`.

    Raises:
        ValueError: if an option is unknown or out of range, or the embedder lacks such layers.
    """

    def __init__(
        self,
        embedder: nn.Module,
        feature_layer: str,
        side: int = 4,
        *,
        projection: nn.Linear | nn.Identity | None = None,
        global_vector: GlobalVector = "embedding",
        pooling: Pooling = "resample",
    ) -> None:
        super().__init__()
        require_known("global_vector", global_vector, get_args(GlobalVector))
        require_known("pooling", pooling, get_args(Pooling))
        if side < 1:
            raise ValueError(f"side={side} must be at least 1")
        self.embedder = embedder
        self.feature_layer = feature_layer
        if projection is None:
            self._projection_name = f"embedder.{find_projection(embedder, feature_layer)}"
        else:
            # A part of the embedder must not be registered twice: its weights would be saved twice.
            inside = [name for name, module in self.named_modules() if module is projection]
            self._projection_name = inside[0] if inside else "own_projection"
            if not inside:
                self.own_projection = projection
        self.side = side
        self.pooling = pooling
        self.global_vector = global_vector

    @property
    def projection(self) -> nn.Linear | nn.Identity:
        """Projection that is applied at every position: a linear layer or the identity."""
        return cast("nn.Linear | nn.Identity", self.get_submodule(self._projection_name))

    def regions(self, images: Tensor) -> Tensor:
        """Regions ``(N, R, D)``, not normalised, as the training losses take them."""
        return self._embed(images)[1]

    def represent(self, images: Tensor) -> Representation:
        """Representation of ``(N, 3, H, W)`` images.

        Raises:
            ValueError: if the feature layer gives no maps, or embeddings and projection differ in size.
        """
        embeddings, regions = self._embed(images)
        if self.global_vector == "locations":
            return Representation(unit(regions), mean_vector(regions))
        return Representation(unit(regions), unit(embeddings))

    def forward(self, images: Tensor) -> Representation:
        """As `represent`."""
        return self.represent(images)

    def _embed(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings ``(N, D)`` and regions ``(N, R, D)``, neither normalised.

        Of the precision of the projection where the network runs in a lower one: in 16 bits similar images would tie.
        """
        layer = self.projection
        embeddings, feature_map = embed_with_map(self.embedder, self.feature_layer, images)
        with torch.autocast(images.device.type, enabled=False):
            if isinstance(layer, nn.Identity):
                dtype = torch.promote_types(feature_map.dtype, torch.float32)
                z = feature_map.to(dtype)
            else:
                dtype = layer.weight.dtype
                z = project(feature_map.to(dtype), layer.weight, layer.bias)  # (N, D, H, W)
            return embeddings.to(dtype), grid_regions(z, self.side, self.pooling)


class DIML(LocatedEmbedder):
    """Any embedder whose last layers are a pooling and a linear map, with structural matching on top.

    What it says of representations is said by its ``matcher``, which needs no network.

    Args:
        embedder: with its ``feature_layer``, ``side``, ``projection``, ``global_vector`` and ``pooling`` as of
            `LocatedEmbedder`.
        truncation: with ``options`` as of `StructuralMatcher`: ``score``, ``marginal``, ``reg``, ``tolerance`` and
            ``solver``.

    Raises:
        ValueError: if an option is unknown or out of range, or the embedder lacks such layers.
    """

    def __init__(
        self,
        embedder: nn.Module,
        feature_layer: str,
        side: int = 4,
        truncation: int | None = 100,
        *,
        projection: nn.Linear | nn.Identity | None = None,
        global_vector: GlobalVector = "embedding",
        pooling: Pooling = "resample",
        **options: Unpack[MatcherOptions],
    ) -> None:
        super().__init__(
            embedder, feature_layer, side, projection=projection, global_vector=global_vector, pooling=pooling
        )
        self.matcher = StructuralMatcher(truncation, **options)

    def similarity(self, query: Representation, gallery: Representation) -> Tensor:
        """As `StructuralMatcher.similarity`, ``(Q, G)``."""
        return self.matcher.similarity(query, gallery)

    def rank(
        self, query: Representation, gallery: Representation, *, self_match: bool = False, depth: int | None = None
    ) -> Tensor:
        """As `StructuralMatcher.rank`, ``(Q, G)`` or ``(Q, depth)`` int64."""
        return self.matcher.rank(query, gallery, self_match=self_match, depth=depth)

    def explain(self, query: Representation, gallery: Representation) -> Explanation:
        """As `StructuralMatcher.explain`."""
        return self.matcher.explain(query, gallery)
