"""Measures of likeness taken apart into their summands: pairs of locations, or nodes of a graph.

`by_structure` takes DIML's structural similarity apart: plan times similarity of each pair of locations. `by_graph`
takes AVSL's distance apart, and says where its nodes look. `by_activation` takes a cosine of two embeddings apart:
where pooling is linear in the locations once the place of each maximum is known, and the head is a linear layer, an
embedding is a sum of one vector per location, ``e = sum_i v_i``. So the cosine is a sum over pairs of locations ::

    cos(e, e') = sum_ij  v_i . v'_j / (|e| |e'|),

exactly. Source: Stylianou, Souvenir and Pless, "Visualizing Deep Similarity Networks" (WACV 2019), for mean pooling;
Zhu et al., "Visual Explanation for Deep Metric Learning" (TIP 2021), with a linear layer. Differs: the bias is spread
evenly over the locations, and each maximum lies where it was found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.base.checks import require_keys
from lookalike.explanations.explanation import Explanation, Nodes, on_grid
from lookalike.methods.avsl.attention import contribution_maps
from lookalike.methods.avsl.bounds import exact_distance
from lookalike.methods.avsl.graph import Images, Step, graph_images, graph_steps
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.diml.head import Pooling
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.model import DIML, GlobalVector, LocatedEmbedder
from lookalike.models.embedder import Embedder

ACTIVATION = "activation"
LINEAR = ("average", "max", "average_max")  # poolings that are a sum over locations
STRUCTURE = "structure"
SIDE = 4
MATCHED = ("marginal", "reg", "tolerance", "solver")  # options of `Matching`
GRAPH = "graph"


def decomposes(embedder: Embedder) -> bool:
    """Whether an embedding is a sum over locations."""
    return embedder.pooling in LINEAR and isinstance(embedder.head, nn.Linear | nn.Identity)


@torch.no_grad()
def by_activation(embedder: Embedder, images: Tensor) -> Explanation:
    """Decompose the cosine into contributions of pairs of locations, in float64.

    Args:
        embedder: pooling by mean, maximum or both, and a linear head or none.
        images: ``(R, N, 3, H, W)`` of two or three roles.

    Raises:
        ValueError: for another pooling or head.
    """
    if not decomposes(embedder):
        head = type(embedder.head).__name__
        raise ValueError(
            f"method {ACTIVATION!r} needs pooling {', '.join(LINEAR)} and a linear head, not {embedder.pooling!r} and "
            f"{head}; 'attention' and 'gradient' explain any embedder"
        )
    feature_maps = embedder.trunk(images.flatten(0, 1))[-1]
    grid = (feature_maps.shape[2], feature_maps.shape[3])
    vectors = location_vectors(embedder, feature_maps)  # (R N, h w, D)
    whole = vectors.sum(dim=1)
    vectors = vectors / whole.norm(dim=1).clamp(min=1e-12)[:, None, None]
    query, gallery, *negative = vectors.view(len(images), -1, *vectors.shape[1:])
    pairs = query @ gallery.transpose(1, 2)  # (N, h w, h w)
    value = pairs.sum(dim=(1, 2))
    maps = [pairs.sum(dim=2), pairs.sum(dim=1)]
    if negative:
        against = query @ negative[0].transpose(1, 2)
        maps = [maps[0] - against.sum(dim=2), maps[1], against.sum(dim=1)]
    return Explanation(
        ACTIVATION,
        "cosine",
        torch.nn.functional.cosine_similarity(*(part.sum(dim=1) for part in (query, gallery))),
        tuple(on_grid(each, grid) for each in maps),
        explained=value,
        pairs=pairs,
        grid=grid,
    )


def location_vectors(embedder: Embedder, feature_maps: Tensor) -> Tensor:
    """Contribution of each location to the embedding, ``(N, h w, D)`` float64, of maps ``(N, C, h, w)``."""
    flat = feature_maps.flatten(2).double()  # (N, C, h w)
    shares = torch.zeros_like(flat)
    if embedder.pooling in ("average", "average_max"):
        shares += flat / flat.shape[2]
    if embedder.pooling in ("max", "average_max"):
        places = flat.argmax(dim=2, keepdim=True)
        shares.scatter_add_(2, places, flat.gather(2, places))
    located = shares.transpose(1, 2)  # (N, h w, C)
    if isinstance(embedder.head, nn.Identity):
        return located
    head = embedder.head
    if not isinstance(head, nn.Linear):
        raise ValueError(f"a head of type {type(head).__name__} is no linear layer")
    vectors = located @ head.weight.double().T
    return vectors if head.bias is None else vectors + head.bias.double() / flat.shape[2]


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
    """Decompose the structural similarity into contributions of pairs of locations, in float64.

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
    require_keys(f"method {STRUCTURE!r}", matched, MATCHED)
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
        STRUCTURE,
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
        raise ValueError(f"method {STRUCTURE!r} needs one layer for all locations, an embedder of stripes has one each")
    projection = embedder.head if isinstance(embedder.head, nn.Linear | nn.Identity) else None
    return LocatedEmbedder(
        embedder, "trunk", side, projection=projection, pooling=pooling, global_vector=global_vector
    ).eval()


@torch.no_grad()
def by_graph(model: AVSL, images: Tensor) -> Explanation:
    """Decompose the distance into contributions of nodes; a map sums the nodes' own at image size, weighed by them.

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
    return Explanation(GRAPH, "distance", value.double(), tuple(maps), explained=explained, nodes=nodes)


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
    """Maps ``(N, *size)`` of the difference in the query and in the gallery image of each pair."""
    added = (nodes.sensitivity * nodes.difference).unbind(1)  # per level (N, r)
    return [contribution_maps([level[:, None] for level in added], each.maps, size)[:, 0] for each in (query, gallery)]
