"""AVSL's distance, taken apart into what each node adds to it, and where its nodes look."""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.explanations.explanation import Explanation, Nodes
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Explanation as GraphExplanation

METHOD = "graph"


@torch.no_grad()
def by_graph(model: AVSL, images: Tensor) -> Explanation:
    """What nodes add to the distance; a map is that of every node at the size of the image, by what the node adds.

    Args:
        model: in evaluation mode.
        images: ``(R, N, 3, H, W)`` of two or three roles.
    """
    size = (images.shape[-2], images.shape[-1])
    seen = [model(some, with_maps=True) for some in images]
    # Pair by pair: the method explains all queries against all of a gallery.
    rows = range(images.shape[1])
    first = [model.explain(seen[0][row], seen[1][row]) for row in rows]
    maps = [torch.cat([each.attention(size)[side][0] for each in first]) for side in (0, 1)]
    if len(images) > 2:
        second = [model.explain(seen[0][row], seen[2][row]) for row in rows]
        against = [torch.cat([each.attention(size)[side][0] for each in second]) for side in (0, 1)]
        maps = [maps[0] - against[0], maps[1], against[1]]
    nodes = Nodes(
        _levels(first, "reliability"),
        _levels(first, "nodes"),
        _levels(first, "sensitivities"),
        tuple(edges for edges in model.edges() if edges is not None),
    )
    explained = (nodes.sensitivity.double() * nodes.difference.double()).sum(dim=(1, 2))
    value = torch.cat([each.distance[0] for each in first])
    return Explanation(METHOD, "distance", value.double(), tuple(maps), explained=explained, nodes=nodes)


def _levels(explained: list[GraphExplanation], field: str) -> Tensor:
    """One of its tensors for all pairs, ``(N, L, r)``."""
    return torch.stack([torch.cat([level[0] for level in getattr(each, field)]) for each in explained])
