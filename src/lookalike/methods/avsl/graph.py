"""AVSL's graph: its edges, and on one block of pairs nodes, reliabilities and the recursion over levels.

Symbols of the paper: ``delta`` nodes (squared difference of one unit-vector entry), ``p`` reliability, ``omega`` the
running state of the edges, ``W~`` the normalised edges used in the distance, ``d^`` overall distance, ``lambda``
sensitivity, ``s`` node statistic. Lists run over levels, lowest first. The lowest level is fully reliable (``p = 1``)
and has no edges: its alpha, beta, edges and statistics are never read. An edge says how much a node's map agrees with a
map of the level below: rows are the upper level's nodes, columns the lower level's.

Source: Attributable Visual Similarity Learning (CVPR 2022), Eq. 1 to 8; details of the edges are the released code's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

TILE = 64  # rows of a product, a multiple of those that any kernel takes at once


@dataclass(frozen=True)
class Images:
    """Images as the graph sees them, per level ``(N, r)``: unit vectors and node statistics."""

    units: list[Tensor]
    statistics: list[Tensor]

    @property
    def count(self) -> int:
        """Number of images."""
        return self.units[0].shape[0]

    @property
    def nodes(self) -> int:
        """Number of nodes per level."""
        return self.units[0].shape[1]

    def rows(self, index: slice) -> Images:
        """The images of one block."""
        return Images([units[index] for units in self.units], [statistics[index] for statistics in self.statistics])


@dataclass(frozen=True)
class Step:
    """Parameters that one level adds to the one below: ``alpha (r,)``, ``beta (r,)`` and ``edges (r, r)``."""

    alpha: Tensor
    beta: Tensor
    edges: Tensor
    packed: Tensor | None
    """The edges as oneDNN takes them, where it is the faster product."""

    def predict(self, nodes: Tensor) -> Tensor:
        """Prediction of the nodes below, ``(..., r)``, for the nodes of this level."""
        if self.packed is None or nodes.requires_grad:
            return F.linear(nodes, self.edges) if nodes.dtype != torch.float64 else _rounded_alike(nodes, self.edges)
        return F.linear(nodes.to_mkldnn(), self.packed).to_dense()


def _rounded_alike(nodes: Tensor, edges: Tensor) -> Tensor:
    """`torch.nn.functional.linear` that rounds equal rows alike, so that equal images lie at equal distances.

    MKL takes rows by fours, and those that are left over by another kernel.
    """
    rows = nodes.reshape(-1, nodes.shape[-1])
    whole = F.pad(rows, (0, 0, 0, -len(rows) % TILE)) if len(rows) % TILE else rows
    return F.linear(whole, edges)[: len(rows)].reshape(*nodes.shape[:-1], len(edges))


def _packed(edges: Tensor) -> Tensor | None:
    # On AMD processors MKL, behind every other product, leaves half of the vector width unused; oneDNN does not.
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if available and edges.device.type == "cpu" and edges.dtype == torch.float32:
        return edges.to_mkldnn()
    return None


def _require(name: str, value: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if value is None or value.shape != shape or value.dtype != dtype:
        actual = None if value is None else (tuple(value.shape), value.dtype)
        raise ValueError(f"{name} has shape and dtype {actual}, it must have {(shape, dtype)}")
    return value


def graph_images(
    name: str, embeddings: Sequence[Tensor], statistics: Sequence[Tensor], learned_statistics: bool
) -> Images:
    """Images with unit vectors; embeddings enter as constants, statistics too unless they are learned.

    Raises:
        ValueError: if the levels, or the images and nodes of two levels, do not belong together.
    """
    if not embeddings or len(embeddings) != len(statistics):
        raise ValueError(
            f"{name} has {len(embeddings)} levels of embeddings and {len(statistics)} of statistics, "
            "it must have the same number, at least 1"
        )
    if embeddings[0].ndim != 2:
        raise ValueError(f"{name}_embeddings[0] has shape {tuple(embeddings[0].shape)}, it must be (N, r)")
    shape, dtype = tuple(embeddings[0].shape), embeddings[0].dtype
    for level, pair in enumerate(zip(embeddings, statistics, strict=True)):
        _require(f"{name}_embeddings[{level}]", pair[0], shape, dtype)
        _require(f"{name}_statistics[{level}]", pair[1], shape, dtype)
    return Images(
        [F.normalize(level.detach(), dim=-1, eps=1e-12) for level in embeddings],
        [level if learned_statistics else level.detach() for level in statistics],
    )


def graph_steps(
    images: Images, alpha: Sequence[Tensor | None], beta: Sequence[Tensor | None], edges: Sequence[Tensor | None]
) -> list[Step]:
    """Steps from the second level to the top; edges enter as constants.

    Raises:
        ValueError: if a list has another length than the images have levels, or an entry another shape.
    """
    levels, nodes, dtype = len(images.units), images.nodes, images.units[0].dtype
    for name, values in (("alpha", alpha), ("beta", beta), ("edges", edges)):
        if len(values) != levels:
            raise ValueError(f"{name} has {len(values)} entries, it must have {levels}, one per level")
    steps = []
    for level in range(1, levels):
        kept = _require(f"edges[{level}]", edges[level], (nodes, nodes), dtype).detach()
        slope = _require(f"alpha[{level}]", alpha[level], (nodes,), dtype)
        offset = _require(f"beta[{level}]", beta[level], (nodes,), dtype)
        steps.append(Step(slope, offset, kept, _packed(kept)))
    return steps


def reliability(
    query_statistics: Tensor, gallery_statistics: Tensor, alpha: Tensor, beta: Tensor, scale: float = 10.0
) -> Tensor:
    """Share of a node that is taken from its own level rather than from the nodes below.

    Source: AVSL, Eq. 8, whose text calls it unreliability although it multiplies the node itself. Differs: the
    released code multiplies the argument of the sigmoid by 10; ``scale=1`` is the paper.

    Args:
        query_statistics: ``(Q, r)``.
        gallery_statistics: ``(G, r)``.
        alpha: ``(r,)``, slope over the product of the two statistics.
        beta: ``(r,)``, offset.
        scale: factor of the sigmoid's argument.

    Returns:
        ``(Q, G, r)`` in [0, 1].

    Raises:
        ValueError: if the numbers of nodes, or the dtypes, differ.
    """
    if alpha.ndim != 1:
        raise ValueError(f"alpha has shape {tuple(alpha.shape)}, it must be (r,)")
    nodes, dtype = len(alpha), alpha.dtype
    _require("beta", beta, (nodes,), dtype)
    _require("query_statistics", query_statistics, (len(query_statistics), nodes), dtype)
    _require("gallery_statistics", gallery_statistics, (len(gallery_statistics), nodes), dtype)
    slope = scale * alpha * query_statistics  # (Q, r)
    return torch.sigmoid(torch.addcmul(scale * beta, slope[:, None], gallery_statistics))


def level_nodes(query: Images, gallery: Images, level: int) -> Tensor:
    """Nodes of one level, ``(Q, G, r)``: squared differences of the unit vectors (Eq. 1)."""
    return (query.units[level][:, None] - gallery.units[level]).square()


def level_reliability(query: Images, gallery: Images, steps: Sequence[Step], level: int, scale: float) -> Tensor:
    """Reliability of one level above the lowest, ``(Q, G, r)``."""
    step = steps[level - 1]
    return reliability(query.statistics[level], gallery.statistics[level], step.alpha, step.beta, scale)


def block_distance(query: Images, gallery: Images, steps: Sequence[Step], scale: float) -> Tensor:
    """Overall distance ``(Q, G)`` of one block of pairs.

    Each level mixes its own nodes with what the level below predicts for them:
    ``delta^ = p delta + (1 - p) W~ delta^_below``.
    """
    nodes = level_nodes(query, gallery, 0)  # (Q, G, r)
    for level, step in enumerate(steps, start=1):
        trust = level_reliability(query, gallery, steps, level, scale)
        nodes = torch.lerp(step.predict(nodes), level_nodes(query, gallery, level), trust)  # (Q, G, r)
    return nodes.sum(dim=-1)


def block_sensitivities(query: Images, gallery: Images, steps: Sequence[Step], scale: float) -> list[Tensor]:
    """Derivative of the overall distance by every node, per level ``(Q, G, r)``: the recursion read from the top."""
    carried = query.units[0].new_ones(query.count, gallery.count, query.nodes)  # (Q, G, r), d d^ / d delta^ of the top
    levels = []
    for level in range(len(steps), 0, -1):
        trust = level_reliability(query, gallery, steps, level, scale)
        levels.append(carried * trust)  # by the level's own nodes
        carried = (carried * (1 - trust)) @ steps[level - 1].edges  # by the mixed nodes of the level below
    return [carried, *reversed(levels)]  # the lowest is fully reliable


def batch_edges(upper_cams: Tensor, lower_cams: Tensor) -> Tensor:
    """Mean over the batch of the cosine between each upper and each lower map.

    Differs: the paper resizes both maps to the smaller height and width and does not say how; as in the released code
    the lower map is average-pooled to the upper's size. Bias is included, no minimum is subtracted.

    Args:
        upper_cams: ``(N, r, H, W)``.
        lower_cams: ``(N, r', H', W')`` of the same images, one level below.

    Returns:
        ``(r, r')`` in [-1, 1].

    Raises:
        ValueError: if the maps are not of the same images.
    """
    if upper_cams.ndim != 4 or lower_cams.ndim != 4 or len(upper_cams) != len(lower_cams) or not len(upper_cams):
        raise ValueError(
            f"upper_cams {tuple(upper_cams.shape)} and lower_cams {tuple(lower_cams.shape)} must be (N, r, H, W) "
            "of the same N >= 1 images"
        )
    pooled = F.adaptive_avg_pool2d(lower_cams, (upper_cams.shape[2], upper_cams.shape[3]))
    upper, lower = (F.normalize(cams.flatten(2), dim=-1, eps=1e-12) for cams in (upper_cams, pooled))  # (N, r, R)
    return torch.einsum("nip,njp->ij", upper, lower) / len(upper)


def update_edges(state: Tensor | None, batch: Tensor, momentum: float) -> Tensor:
    """Running edges after one more batch: ``momentum * state + (1 - momentum) * batch``.

    Args:
        state: ``(r, r)``, or ``None`` before the first batch, which is then copied.
        batch: ``(r, r)`` edges of the batch.
        momentum: share of the old state, in [0, 1]; 0 keeps the last batch only.

    Returns:
        ``(r, r)``, a new tensor.

    Raises:
        ValueError: if ``momentum`` is outside [0, 1] or the shapes differ.
    """
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum={momentum} is outside [0, 1]")
    if state is None:
        return batch.clone()
    if state.shape != batch.shape:
        raise ValueError(f"state has shape {tuple(state.shape)}, it must be {tuple(batch.shape)} as the batch's edges")
    return momentum * state + (1 - momentum) * batch


def relative_change(before: Tensor, after: Tensor) -> Tensor:
    """By how much edges changed, ``(...)``: mean of ``|after - before|`` over the mean of ``|after|``.

    Source: AVSL, Fig. 9. Differs: the paper plots the fluctuation of edges and does not say how it is measured.

    Args:
        before: ``(..., r, r')``.
        after: ``(..., r, r')``.

    Raises:
        ValueError: if the shapes differ.
    """
    if before.shape != after.shape:
        raise ValueError(f"before has shape {tuple(before.shape)}, it must be {tuple(after.shape)} as after")
    size = after.abs().mean(dim=(-2, -1)).clamp_min(torch.finfo(after.dtype).tiny)
    return (after - before).abs().mean(dim=(-2, -1)) / size


def normalise_edges(state: Tensor, k: int) -> Tensor:
    """Edges as used in the distance: per upper node the ``k`` strongest positive ones, scaled to a sum of one.

    Differs: the paper keeps exactly ``k``; the released code keeps all within 1e-8 of the ``k``-th, so that exact ties
    stay together, and adds 1e-8 to the row sum. Negative edges are cut, which the paper's range [0, 1] implies.

    Args:
        state: ``(r, r')``.
        k: edges kept per row, ``1 <= k <= r'``.

    Returns:
        ``(r, r')``, non-negative; a row without a positive edge is all zero.

    Raises:
        ValueError: if ``state`` is no matrix or ``k`` is outside ``[1, r']``.
    """
    if state.ndim != 2:
        raise ValueError(f"state has shape {tuple(state.shape)}, it must be (r, r')")
    if not 1 <= k <= state.shape[1]:
        raise ValueError(f"k={k} is outside [1, {state.shape[1]}], the nodes of the lower level")
    positive = state.clamp(min=0)
    weakest = positive.topk(k, dim=1).values[:, -1:]  # (r, 1)
    kept = positive * (positive >= weakest - 1e-8)
    return kept / (kept.sum(dim=1, keepdim=True) + 1e-8)
