"""AVSL's distance, taken apart into what each node adds to it, and where its nodes look."""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.explanations.explanation import Explanation, Nodes
from lookalike.methods.avsl.attention import contribution_maps
from lookalike.methods.avsl.bounds import exact_distance
from lookalike.methods.avsl.graph import Images, Step, graph_images, graph_steps
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation

METHOD = "graph"


@torch.no_grad()
def by_graph(model: AVSL, images: Tensor) -> Explanation:
    """What nodes add to the distance; a map is that of every node at the size of the image, by what the node adds.

    Args:
        model: in evaluation mode.
        images: ``(R, N, 3, H, W)`` of two or three roles.
    """
    size = (images.shape[-2], images.shape[-1])
    query, *others = [model(some, with_maps=True) for some in images]
    value, nodes = pair_nodes(model, query, others[0])
    maps = _maps(nodes, query, others[0], size)
    if len(others) > 1:
        against = _maps(pair_nodes(model, query, others[1])[1], query, others[1], size)
        maps = [maps[0] - against[0], maps[1], against[1]]
    explained = (nodes.sensitivity.double() * nodes.difference.double()).sum(dim=(1, 2))
    return Explanation(METHOD, "distance", value.double(), tuple(maps), explained=explained, nodes=nodes)


def pair_nodes(model: AVSL, query: Representation, gallery: Representation) -> tuple[Tensor, Nodes]:
    """Distances ``(N,)`` of pairs, from the lowest level up, and their nodes, weighed from the top down.

    As `lookalike.methods.avsl.model.AVSL.explain` says of all queries and all of a gallery, here of one pair each.
    """
    sides = [
        graph_images(name, each.embeddings, each.statistics, learned_statistics=False)
        for name, each in (("query", query), ("gallery", gallery))
    ]
    difference = torch.stack([(q - g).square() for q, g in zip(sides[0].units, sides[1].units, strict=True)], dim=1)
    reliability, sensitivity = torch.ones_like(difference), torch.ones_like(difference)
    if model.variant == "top":
        sensitivity[:, :-1] = 0
    if model.variant in ("top", "concat"):
        value = (sensitivity * difference).sum(dim=(1, 2))
    else:
        _weigh(model, sides[0], sides[1], reliability, sensitivity)
        value = exact_distance(sides[0], sides[1], _steps(model, sides[0]), model.sigmoid_scale)
    edges = tuple(each for each in model.edges() if each is not None)
    return value, Nodes(reliability, difference, sensitivity, edges)


def _weigh(model: AVSL, query: Images, gallery: Images, reliability: Tensor, sensitivity: Tensor) -> None:
    """Fill in reliabilities and sensitivities ``(N, L, r)`` of a graph."""
    steps, carried = _steps(model, query), torch.ones_like(reliability[:, 0])
    for level in range(len(steps), 0, -1):
        step = steps[level - 1]
        products = step.alpha * query.statistics[level] * gallery.statistics[level]
        reliability[:, level] = torch.sigmoid(model.sigmoid_scale * (products + step.beta))
        sensitivity[:, level] = carried * reliability[:, level]
        carried = (carried * (1 - reliability[:, level])) @ step.edges
    sensitivity[:, 0] = carried


def _steps(model: AVSL, images: Images) -> list[Step]:
    return graph_steps(images, [None, *model.alpha], [None, *model.beta], model.edges())


def _maps(nodes: Nodes, query: Representation, gallery: Representation, size: tuple[int, int]) -> list[Tensor]:
    """Where either image of each pair holds the difference, ``(N, *size)``."""
    added = (nodes.sensitivity * nodes.difference).unbind(1)  # per level (N, r)
    return [contribution_maps([level[:, None] for level in added], each.maps, size)[:, 0] for each in (query, gallery)]
