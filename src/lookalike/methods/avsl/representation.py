"""Representation of images by AVSL, and its explanation of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from lookalike.methods.avsl.attention import contribution_maps


@dataclass(frozen=True)
class Representation:
    """N images at L levels, lowest first.

    Attributes:
        embeddings: per level ``(N, r)``, not normalised.
        statistics: per level ``(N, r)``, how unevenly each node looks; 0 at the lowest, where it is never read.
        maps: per level ``(N, r, H, W)`` class activation maps, or empty where they were not asked for.
    """

    embeddings: tuple[Tensor, ...]
    statistics: tuple[Tensor, ...]
    maps: tuple[Tensor, ...] = ()

    def __post_init__(self) -> None:
        levels = len(self.embeddings)
        if not levels or len(self.statistics) != levels or len(self.maps) not in (0, levels):
            raise ValueError(
                f"{levels} levels of embeddings, {len(self.statistics)} of statistics and {len(self.maps)} of maps: "
                "the numbers must agree, maps may be left out"
            )
        counts = {len(level) for level in (*self.embeddings, *self.statistics, *self.maps)}
        if len(counts) > 1:
            raise ValueError(f"the levels hold {sorted(counts)} images, they must hold the same number")

    def __len__(self) -> int:
        """Number of images."""
        return len(self.embeddings[0])

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor) -> Representation:
        """The chosen images; one whole number gives a representation of one image."""
        if isinstance(index, int):
            index = [index]
        return self._each(lambda level: level[index])

    def to(self, *args: Any, **kwargs: Any) -> Representation:
        """All tensors moved or converted, with the arguments of `torch.Tensor.to`."""
        return self._each(lambda level: level.to(*args, **kwargs))

    def cpu(self) -> Representation:
        """All tensors in main memory."""
        return self.to("cpu")

    def float(self) -> Representation:
        """All tensors in float32."""
        return self.to(torch.float32)

    def state(self) -> dict[str, Tensor]:
        """Flat mapping ``<field>.<level>`` to tensor, as safetensors stores it."""
        return {
            f"{field.name}.{level}": tensor.contiguous()
            for field in fields(self)
            for level, tensor in enumerate(getattr(self, field.name))
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Representation:
        """Inverse of `state`.

        Raises:
            ValueError: if a key is unknown or a level is missing.
        """
        counts = Counter(key.partition(".")[0] for key in state)
        keys = {field.name: [f"{field.name}.{level}" for level in range(counts[field.name])] for field in fields(cls)}
        if {key for levels in keys.values() for key in levels} != set(state):
            raise ValueError(f"keys {sorted(state)} must be <field>.<level> with fields {list(keys)}, levels from 0")
        return cls(*(tuple(state[key] for key in levels) for levels in keys.values()))

    @classmethod
    def cat(cls, parts: Sequence[Representation]) -> Representation:
        """All images of several representations, in order.

        Raises:
            ValueError: if there are none, or only some of them carry maps, or their levels differ.
        """
        shapes = {(len(part.embeddings), len(part.maps)) for part in parts}
        if len(shapes) != 1:
            raise ValueError(f"parts have (levels, levels of maps) {sorted(shapes)}, there must be parts, all alike")
        return cls(
            *(
                tuple(torch.cat(level) for level in zip(*(getattr(part, field.name) for part in parts), strict=True))
                for field in fields(cls)
            )
        )

    def _each(self, change: Callable[[Tensor], Tensor]) -> Representation:
        return Representation(*(tuple(change(level) for level in getattr(self, field.name)) for field in fields(self)))


@dataclass(frozen=True)
class Explanation:
    """Why Q images are as far from G others as they are, node by node.

    Attributes:
        distance: ``(Q, G)``, the sum of `contributions` over levels and nodes.
        reliability: per level ``(Q, G, r)``; one at the lowest.
        nodes: per level ``(Q, G, r)``, squared differences (the paper's delta).
        sensitivities: per level ``(Q, G, r)`` (the paper's lambda).
        query_maps: per level ``(Q, r, H, W)``, empty where the representation carries none.
        gallery_maps: per level ``(G, r, H, W)``, empty where the representation carries none.
    """

    distance: Tensor
    reliability: tuple[Tensor, ...]
    nodes: tuple[Tensor, ...]
    sensitivities: tuple[Tensor, ...]
    query_maps: tuple[Tensor, ...] = ()
    gallery_maps: tuple[Tensor, ...] = ()

    @property
    def contributions(self) -> tuple[Tensor, ...]:
        """Share of every node in the distance, per level ``(Q, G, r)``."""
        return tuple(weight * node for weight, node in zip(self.sensitivities, self.nodes, strict=True))

    def attention(self, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Maps of the difference in the query and in the gallery image, each ``(Q, G, *size)``.

        Raises:
            ValueError: if the representations carried no maps.
        """
        contributions = self.contributions
        query = contribution_maps(contributions, self.query_maps, size)
        # Seen from the gallery pairs are (G, Q, r); the maps are turned back.
        gallery = contribution_maps([level.transpose(0, 1) for level in contributions], self.gallery_maps, size)
        return query, gallery.transpose(0, 1)
