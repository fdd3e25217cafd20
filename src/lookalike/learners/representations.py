"""What is kept of the test pictures, by the name that recipes give it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from lookalike.methods.diml.head import Pooling
from lookalike.methods.diml.model import GlobalVector, LocatedEmbedder
from lookalike.methods.diml.scoring import located
from lookalike.training.learner import Learner, Tensors

Represent = Callable[[nn.Module, Tensor], Tensors]


def own(learner: type[Learner], *, seed: int) -> Represent:
    """What the method itself keeps."""
    return learner.represent


def locations(
    learner: type[Learner],
    *,
    seed: int,
    side: int = 4,
    pooling: Pooling = "resample",
    global_vector: GlobalVector = "embedding",
) -> Represent:
    """Embedding and regions of an embedder trained in any way, for structural matching.

    Args:
        learner: not read.
        seed: not read.
        side: G, side of the grid of locations.
        pooling: how the grid is pooled: ``resample``, ``roi_align`` or ``adaptive``, see `grid_pool`.
        global_vector: the vector kept as embedding: ``embedding``, or ``locations`` for the mean of the regions.
    """

    @cache
    def around(model: nn.Module) -> LocatedEmbedder:
        return LocatedEmbedder(model, "trunk", side, pooling=pooling, global_vector=global_vector)

    return lambda model, images: located(around(model), images)


def random_vectors(learner: type[Learner], *, seed: int, dim: int) -> Represent:
    """A unit vector per picture, whatever it shows: what chance finds.

    Args:
        learner: not read.
        seed: seed of the vectors.
        dim: numbers of a vector.
    """
    generator = torch.Generator().manual_seed(seed)

    def represent(model: nn.Module, images: Tensor) -> Tensors:
        drawn = torch.randn(len(images), dim, generator=generator)
        return {"embedding": torch.nn.functional.normalize(drawn, dim=1)}

    return represent


REPRESENTATIONS: dict[str, Callable[..., Represent]] = {
    "own": own,
    "locations": locations,
    "random_vectors": random_vectors,
}
