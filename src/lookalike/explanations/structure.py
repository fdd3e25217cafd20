"""DIML's structural similarity, taken apart into what each pair of locations adds to it: plan times similarity."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookalike.explanations.explanation import Explanation
from lookalike.explanations.images import on_grid
from lookalike.methods.diml.located import LocatedEmbedder
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import DIML
from lookalike.models.embedder import Embedder

METHOD = "structure"
SIDE = 4


@torch.no_grad()
def by_structure(model: Embedder | LocatedEmbedder, images: Tensor, side: int = SIDE) -> Explanation:
    """What pairs of locations add to the structural similarity, in float64.

    Args:
        model: a `DIML` with its own settings, or any embedder.
        images: ``(R, N, 3, H, W)`` of two or three roles.
        side: of the grid, where the model is an embedder.
    """
    located = model if isinstance(model, LocatedEmbedder) else located_by(model, side)
    matcher = model.matcher if isinstance(model, DIML) else StructuralMatcher()
    seen = located.represent(images.flatten(0, 1)).to(torch.float64)
    regions = seen.regions.view(len(images), -1, *seen.regions.shape[1:])  # (R, N, S, D)
    vectors = seen.global_vector.view(len(images), -1, seen.global_vector.shape[1])  # (R, N, D)
    grid = (located.side, located.side)

    def contributions(other: int) -> tuple[Tensor, Tensor]:
        match = matcher.matching(regions[0], vectors[0], regions[other][:, None], vectors[other][:, None])
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


def located_by(embedder: Embedder, side: int) -> LocatedEmbedder:
    """An embedder with the regions of its last map; features themselves where it has no head.

    Raises:
        ValueError: for stripes, whose layers differ from place to place.
    """
    if embedder.parts is not None:
        raise ValueError(f"method {METHOD!r} needs one layer for all locations, an embedder of stripes has one each")
    projection = embedder.head if isinstance(embedder.head, nn.Linear | nn.Identity) else None
    return LocatedEmbedder(embedder, "trunk", side, projection=projection).eval()
