"""Explanations as data, for programs of other people."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from lookalike.explanations.explanation import ROLES, Explanation, Nodes
from lookalike.explanations.words import sentence

SIDE, LARGEST = 28, 32  # to which larger maps are averaged
PAIRS, NODES, BELOW = 20, 10, 3  # strongest that are listed


def as_data(explanation: Explanation, row: int = 0) -> dict[str, Any]:
    """What an explanation says of one pair or triplet, as JSON takes it.

    Args:
        explanation: of N.
        row: which of them.

    Returns:
        ``method``, ``measure``, ``value``, ``explained`` (what the evidence sums to, or ``None``), ``words``, ``maps``
        by role with rows of ``values`` (averaged to 28 x 28 where they are larger than 32), and where the method has
        them ``pairs`` of places ``[row, column]`` with what they add, strongest first, and ``levels`` of nodes.
    """
    explained = explanation.explained
    data: dict[str, Any] = {
        "method": explanation.method,
        "measure": explanation.measure,
        "value": float(explanation.value[row]),
        "explained": None if explained is None else float(explained[row]),
        "words": sentence(explanation, row),
        "maps": {role: _map(each[row]) for role, each in zip(ROLES, explanation.maps, strict=False)},
    }
    if explanation.pairs is not None and explanation.grid is not None:
        data["pairs"] = _pairs(explanation.pairs[row], explanation.grid)
    if explanation.nodes is not None:
        data["levels"] = _levels(explanation.nodes, row)
    return data


def _map(values: Tensor) -> dict[str, Any]:
    height, width = values.shape
    if max(height, width) > LARGEST:
        values = F.adaptive_avg_pool2d(values[None, None].double(), (SIDE, SIDE))[0, 0]
    return {"of": [height, width], "values": [[round(each, 7) for each in line] for line in values.tolist()]}


def _pairs(pairs: Tensor, grid: tuple[int, int]) -> list[dict[str, Any]]:
    strongest = pairs.flatten().topk(min(PAIRS, pairs.numel()))
    return [
        {role: list(divmod(place, grid[1])) for role, place in zip(ROLES, divmod(index, pairs.shape[1]), strict=False)}
        | {"adds": value}
        for value, index in zip(strongest.values.tolist(), strongest.indices.tolist(), strict=True)
    ]


def _levels(nodes: Nodes, row: int) -> list[dict[str, Any]]:
    """By level, lowest first, what it adds to the distance, and its strongest nodes."""
    levels = []
    for level, added in enumerate((nodes.sensitivity[row] * nodes.difference[row]).double()):
        strongest = added.topk(min(NODES, len(added))).indices.tolist()
        levels.append({"adds": float(added.sum()), "nodes": [_node(nodes, row, level, node) for node in strongest]})
    return levels


def _node(nodes: Nodes, row: int, level: int, node: int) -> dict[str, Any]:
    """A node's parts, and the nodes below that rectify it where it is not reliable."""
    parts = {
        name: float(getattr(nodes, name)[row, level, node]) for name in ("reliability", "difference", "sensitivity")
    }
    data: dict[str, Any] = {"node": node, "adds": parts["sensitivity"] * parts["difference"], **parts}
    if level > 0:
        below = nodes.edges[level - 1][node].topk(BELOW)
        data["rectified_by"] = dict(zip(map(str, below.indices.tolist()), below.values.tolist(), strict=True))
    return data
