"""Representations that DIML keeps of images, its explanation of a pair, and the pair's heat maps.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Fig. 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isqrt
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.methods.diml.matching import Match


def heat_maps(marginal: Tensor, size: tuple[int, int]) -> Tensor:
    """Marginals spread over the image, enlarged bilinearly.

    Args:
        marginal: ``(..., R)`` of a square grid, row by row.
        size: height and width of the result.

    Returns:
        ``(..., *size)``, with the sum of the marginal where ``size`` is a multiple of the grid.

    Raises:
        ValueError: if R is no square number, or a size is below 1.
    """
    side = isqrt(marginal.shape[-1])
    if side**2 != marginal.shape[-1] or side == 0:
        raise ValueError(f"{marginal.shape[-1]} locations are no square grid")
    if min(size) < 1:
        raise ValueError(f"size={size} must be at least 1 in both directions")
    grid = marginal.reshape(-1, 1, side, side)  # locations lie row by row
    enlarged = F.interpolate(grid, size=size, mode="bilinear", align_corners=False)
    # From mass per location to mass per pixel.
    return enlarged.view(*marginal.shape[:-1], *size) * (side**2 / (size[0] * size[1]))


@dataclass(frozen=True)
class Representation:
    """N images.

    Attributes:
        regions: ``(N, R, D)`` unit vectors of the grid's locations, row by row.
        global_vector: ``(N, D)`` unit vectors.
    """

    regions: Tensor
    global_vector: Tensor

    def __post_init__(self) -> None:
        shape, vector = tuple(self.regions.shape), tuple(self.global_vector.shape)
        if len(shape) != 3 or vector != (shape[0], shape[2]):
            raise ValueError(f"regions {shape} and global_vector {vector} must be (N, R, D) and (N, D)")

    def __len__(self) -> int:
        """Number of images."""
        return len(self.regions)

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor) -> Representation:
        """The chosen images; one whole number gives a representation of one image."""
        if isinstance(index, int):
            index = [index]
        return self._each(lambda tensor: tensor[index])

    def to(self, *args: Any, **kwargs: Any) -> Representation:
        """All tensors moved or converted, with the arguments of `torch.Tensor.to`."""
        return self._each(lambda tensor: tensor.to(*args, **kwargs))

    def cpu(self) -> Representation:
        """All tensors in main memory."""
        return self.to("cpu")

    def state(self) -> dict[str, Tensor]:
        """Mapping from field to tensor, as safetensors stores it."""
        return {field.name: getattr(self, field.name).contiguous() for field in fields(self)}

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Representation:
        """Inverse of `state`.

        Raises:
            ValueError: if a key is missing or unknown.
        """
        names = {field.name for field in fields(cls)}
        if state.keys() != names:
            raise ValueError(f"keys {sorted(state)} must be {sorted(names)}")
        return cls(**state)

    @classmethod
    def cat(cls, parts: Sequence[Representation]) -> Representation:
        """All images of several representations, in order.

        Raises:
            ValueError: if there are none, or their locations or embedding sizes differ.
        """
        shapes = {tuple(part.regions.shape[1:]) for part in parts}
        if len(shapes) != 1:
            raise ValueError(f"parts have (R, D) {sorted(shapes)}, there must be parts, all alike")
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Representation:
        return Representation(change(self.regions), change(self.global_vector))


@dataclass(frozen=True)
class Explanation:
    """Why Q images are as close to G others as they are, location by location.

    Attributes:
        global_similarity: ``(Q, G)`` cosine of the global vectors.
        match: marginals, plan and correlations of the pairs.
    """

    global_similarity: Tensor
    match: Match

    @property
    def structural_similarity(self) -> Tensor:
        """``(Q, G)``, the sum of `contributions`."""
        return self.match.similarity

    @property
    def contributions(self) -> Tensor:
        """Share of every pair of locations in the structural similarity, ``(Q, G, R, R)``, rows the query."""
        return self.match.plan * self.match.correlation

    @property
    def relative_plan(self) -> Tensor:
        """Plan as a multiple of a uniform one, ``(Q, G, R, R)``: the first factor printed in Fig. 5."""
        return self.match.plan * (self.match.plan.shape[-2] * self.match.plan.shape[-1])

    def attention(self, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Maps of the resemblance in the query and in the gallery image, each ``(Q, G, *size)``."""
        return heat_maps(self.match.query_marginal, size), heat_maps(self.match.gallery_marginal, size)
