"""DIML's structural similarity, taken apart into what each pair of locations adds to it: plan times similarity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.checks import require_keys
from lookalike.explanations.explanation import Explanation
from lookalike.explanations.images import on_grid
from lookalike.methods.diml.head import Pooling
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.model import DIML, GlobalVector, LocatedEmbedder
from lookalike.models.embedder import Embedder

METHOD = "structure"
SIDE = 4
MATCHED = ("marginal", "reg", "tolerance", "solver")  # options of `Matching`


@torch.no_grad()
def by_structure(
    model: Embedder | LocatedEmbedder,
    images: Tensor,
    side: int = SIDE,
    *,
    pooling: Pooling = "resample",
    global_vector: GlobalVector = "embedding",
    **matched: Any,
) -> Explanation:
    """What pairs of locations add to the structural similarity, in float64.

    Args:
        model: a `DIML` with its own settings, or any embedder.
        images: ``(R, N, 3, H, W)`` of two or three roles.
        side: of the grid, where the model is an embedder; a located one has its own.
        pooling: of the grid, likewise, see `grid_pool`.
        global_vector: that the marginals are taken by, likewise: ``embedding`` or ``locations``.
        matched: ``marginal``, ``reg``, ``tolerance`` and ``solver`` of `Matching`, in place of those of a `DIML` or of
            the defaults.

    Raises:
        ValueError: for an option that is unknown or out of range.
    """
    located = model if isinstance(model, LocatedEmbedder) else located_by(model, side, pooling, global_vector)
    require_keys(f"method {METHOD!r}", matched, MATCHED)
    matching = replace(model.matcher.matching if isinstance(model, DIML) else Matching(), **matched)
    seen = located.represent(images.flatten(0, 1)).to(torch.float64)
    regions = seen.regions.view(len(images), -1, *seen.regions.shape[1:])  # (R, N, S, D)
    vectors = seen.global_vector.view(len(images), -1, seen.global_vector.shape[1])  # (R, N, D)
    grid = (located.side, located.side)

    def contributions(other: int) -> tuple[Tensor, Tensor]:
        match = matching(regions[0], vectors[0], regions[other][:, None], vectors[other][:, None])
        return (match.plan * match.correlation)[:, 0], match.similarity[:, 0]

    pairs, value = contributions(1)
    maps = [pairs.sum(dim=2), pairs.sum(dim=1)]
    if len(images) > 2:
        against, _ = contributions(2)
        maps = [maps[0] - against.sum(dim=2), maps[1], against.sum(dim=1)]
    return Explanation(
        METHOD,
        "structural similarity",
        value,
        tuple(on_grid(each, grid) for each in maps),
        explained=pairs.sum(dim=(1, 2)),
        pairs=pairs,
        grid=grid,
    )


def located_by(
    embedder: Embedder, side: int, pooling: Pooling = "resample", global_vector: GlobalVector = "embedding"
) -> LocatedEmbedder:
    """An embedder with the regions of its last map; features themselves where it has no head.

    Raises:
        ValueError: for stripes, whose layers differ from place to place.
    """
    if embedder.parts is not None:
        raise ValueError(f"method {METHOD!r} needs one layer for all locations, an embedder of stripes has one each")
    projection = embedder.head if isinstance(embedder.head, nn.Linear | nn.Identity) else None
    return LocatedEmbedder(
        embedder, "trunk", side, projection=projection, pooling=pooling, global_vector=global_vector
    ).eval()
