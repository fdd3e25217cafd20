"""An embedder with the regions of its last map: images in, representations out.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021).
"""

from __future__ import annotations

from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.methods.diml.feature_map import embed_with_map, find_projection
from lookalike.methods.diml.head import grid_regions, mean_vector, project
from lookalike.methods.diml.pooling import Pooling
from lookalike.methods.diml.representation import Representation
from lookalike.tensors import unit

GlobalVector = Literal["embedding", "locations"]


class LocatedEmbedder(nn.Module):
    """Any embedder whose last layers are a pooling and a linear map, with the regions of its last map.

    `lookalike.methods.diml.matcher.StructuralMatcher` compares what it gives; `lookalike.methods.diml.model.DIML` does
    both.

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
        """What is applied at every position."""
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
                z = project(feature_map.to(dtype), layer.weight, layer.bias)
            return embeddings.to(dtype), grid_regions(z, self.side, self.pooling)
