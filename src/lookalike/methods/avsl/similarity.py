"""Distance of images as a graph over levels, and the contribution of every node to it.

Lists run over levels, lowest first. The lowest level is fully reliable and has no edges: its ``alpha``, ``beta``,
statistics and ``edges[0]`` are never read. The functions of the steps before (maps, statistics, edges) are offered
here too, so that the whole mathematics of AVSL can be called from one module.

Source: Attributable Visual Similarity Learning (CVPR 2022), Eq. 1 to 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from lookalike.methods.avsl.attention import class_activation_maps, linearise, node_statistics
from lookalike.methods.avsl.graph import (
    Images,
    batch_edges,
    block_distance,
    block_sensitivities,
    graph_images,
    graph_steps,
    normalise_edges,
    reliability,
    update_edges,
)

__all__ = [
    "batch_edges",
    "class_activation_maps",
    "level_distance",
    "linearise",
    "node_statistics",
    "normalise_edges",
    "overall_distance",
    "reliability",
    "sensitivities",
    "update_edges",
]

# Values of one (pairs, r) block. On a processor, per thread, what its cache holds; from 2 MB on the allocator also
# gives the pages back after every block, which doubles the time. Elsewhere what keeps a device busy.
_BLOCK_VALUES_THREAD = 2**17
_BLOCK_VALUES_DEVICE = 2**25


def _pairs_per_block(images: Images) -> int:
    on_processor = images.units[0].device.type == "cpu"
    values = _BLOCK_VALUES_THREAD * torch.get_num_threads() if on_processor else _BLOCK_VALUES_DEVICE
    return max(1, values // images.nodes)


def level_distance(query: Tensor, gallery: Tensor) -> Tensor:
    """Squared Euclidean distance of unit vectors.

    Args:
        query: ``(Q, r)``, any length of vector.
        gallery: ``(G, r)``.

    Returns:
        ``(Q, G)`` in [0, 4].

    Raises:
        ValueError: if the embedding sizes differ.
    """
    if query.ndim != 2 or gallery.ndim != 2 or query.shape[1] != gallery.shape[1]:
        raise ValueError(f"query {tuple(query.shape)} and gallery {tuple(gallery.shape)} must be (Q, r) and (G, r)")
    query, gallery = (F.normalize(side, dim=-1, eps=1e-12) for side in (query, gallery))
    # Lengths are summed again rather than taken as 1: a zero vector stays zero.
    lengths = query.square().sum(dim=1)[:, None] + gallery.square().sum(dim=1)
    return (lengths - 2 * query @ gallery.T).clamp(min=0)


def _sides(
    query_embeddings: Sequence[Tensor],
    query_statistics: Sequence[Tensor],
    gallery_embeddings: Sequence[Tensor],
    gallery_statistics: Sequence[Tensor],
    learned_statistics: bool,
) -> tuple[Images, Images]:
    """Both sides, as one object where they are the same tensors."""
    query = graph_images("query", query_embeddings, query_statistics, learned_statistics)
    left, right = [*query_embeddings, *query_statistics], [*gallery_embeddings, *gallery_statistics]
    if len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True)):
        return query, query
    gallery = graph_images("gallery", gallery_embeddings, gallery_statistics, learned_statistics)
    shapes = [(len(side.units), side.nodes) for side in (query, gallery)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"gallery has (levels, nodes) {shapes[1]}, it must have {shapes[0]} as the query")
    return query, gallery


def _blocks(queries: int, gallery: int, pairs: int, itself: bool) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of blocks of about ``pairs`` pairs; of a set against itself those on and above the diagonal."""
    # Square blocks read the fewest images for their pairs.
    rows = max(1, min(queries, isqrt(pairs)))
    columns = rows if itself else max(1, min(gallery, pairs // rows))
    rows = rows if itself else max(1, min(queries, pairs // columns))
    for top in range(0, queries, rows):
        for left in range(top if itself else 0, gallery, columns):
            yield slice(top, top + rows), slice(left, left + columns)


def overall_distance(
    query_embeddings: Sequence[Tensor],
    query_statistics: Sequence[Tensor],
    gallery_embeddings: Sequence[Tensor],
    gallery_statistics: Sequence[Tensor],
    *,
    alpha: Sequence[Tensor | None],
    beta: Sequence[Tensor | None],
    edges: Sequence[Tensor | None],
    scale: float = 10.0,
    block: int | None = None,
    learned_statistics: bool = False,
) -> Tensor:
    """Distance over the whole graph, block by block.

    A set against itself (the same tensors on both sides) is evaluated once per unordered pair. With a gradient every
    block is computed anew in the backward pass, so that memory never grows with the number of pairs.

    Args:
        query_embeddings: per level ``(Q, r)``, not yet normalised; constants.
        query_statistics: per level ``(Q, r)``; constants unless ``learned_statistics``.
        gallery_embeddings: per level ``(G, r)``, as the query's.
        gallery_statistics: per level ``(G, r)``, as the query's.
        alpha: per level ``(r,)``; the first may be ``None``.
        beta: per level ``(r,)``; the first may be ``None``.
        edges: per level ``(r, r)`` normalised edges to the level below, the first ``None``; constants.
        scale: factor of the sigmoid's argument, see `reliability`.
        block: pairs evaluated at a time; ``None`` chooses by device and ``r``.
        learned_statistics: let gradients reach the statistics too (learned reliability).

    Returns:
        ``(Q, G)``, at least 0. Gradients reach alpha and beta of all levels but the lowest.

    Raises:
        ValueError: if levels, nodes or sides do not belong together, or ``block`` is below 1.
    """
    if block is not None and block < 1:
        raise ValueError(f"block={block} must be at least 1 pair")
    query, gallery = _sides(
        query_embeddings, query_statistics, gallery_embeddings, gallery_statistics, learned_statistics
    )
    steps = graph_steps(query, alpha, beta, edges)
    inputs = [*query.statistics, *gallery.statistics, *(weight for step in steps for weight in (step.alpha, step.beta))]
    trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    itself = query is gallery
    distance = query.units[0].new_empty(query.count, gallery.count)
    for rows, columns in _blocks(query.count, gallery.count, block or _pairs_per_block(query), itself):
        arguments = (query.rows(rows), gallery.rows(columns), steps, scale)
        if trained:
            # The backward pass computes the block again: kept, its nodes would take (Q, G, r) values per level.
            part = checkpoint(block_distance, *arguments, use_reentrant=False, preserve_rng_state=False)
        else:
            part = block_distance(*arguments)
        distance[rows, columns] = part
        if itself and rows != columns:
            distance[columns, rows] = part.T  # the distance is symmetric
    return distance


def sensitivities(
    query_embeddings: Sequence[Tensor],
    query_statistics: Sequence[Tensor],
    gallery_embeddings: Sequence[Tensor],
    gallery_statistics: Sequence[Tensor],
    *,
    alpha: Sequence[Tensor | None],
    beta: Sequence[Tensor | None],
    edges: Sequence[Tensor | None],
    scale: float = 10.0,
) -> list[Tensor]:
    """Derivative of the overall distance by every node (the paper's lambda).

    Args:
        query_embeddings: per level ``(Q, r)``, not yet normalised; constants.
        query_statistics: per level ``(Q, r)``; constants.
        gallery_embeddings: per level ``(G, r)``, as the query's.
        gallery_statistics: per level ``(G, r)``, as the query's.
        alpha: per level ``(r,)``; the first may be ``None``.
        beta: per level ``(r,)``; the first may be ``None``.
        edges: per level ``(r, r)`` normalised edges to the level below, the first ``None``; constants.
        scale: factor of the sigmoid's argument, see `reliability`.

    Returns:
        Per level ``(Q, G, r)``, at least 0. All of a pair sum to ``r`` (less where a row of edges is empty), and
        sensitivity times node, summed over all nodes, is the overall distance.

    Raises:
        ValueError: as `overall_distance`.
    """
    query, gallery = _sides(query_embeddings, query_statistics, gallery_embeddings, gallery_statistics, False)
    return block_sensitivities(query, gallery, graph_steps(query, alpha, beta, edges), scale)
