"""Explanations as data, of a page and of files: whole numbers for maps, the strongest counterparts of places, nodes.

Everything is a value of JSON. A map is laid on a grid of at most `SIDE` cells to a side and told in percent of its
largest cell; what a cell is of the whole follows from ``peak``, the share of its largest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lookalike.explanations.explanation import Explanation, Nodes
from lookalike.explanations.quality.cells import pooled
from lookalike.explanations.words import sentence

SIDE = 14  # most cells of a map to a side
COUNTERPARTS = 4  # of a place, on either side
NODES = 6  # of a pair
BELOW = 3  # nodes that rectify a node
FULL = 99  # of a map's largest cell
DIGITS = 6  # of a value, behind the point
Data = dict[str, Any]


def as_data(explanation: Explanation, row: int = 0, node_maps: Sequence[tuple[Tensor, Tensor]] = ()) -> Data:
    """Explanation of one pair or triplet as plain data: names, numbers, words and maps.

    Args:
        explanation: of N.
        row: which of them.
        node_maps: per level the maps ``(r, h, w)`` of the nodes in query and match, for `Explanation.nodes`.

    Returns:
        ``method``, ``measure``, ``value``, ``explained`` (what the evidence sums to, or ``None``), ``words``; ``maps``
        of query, match and perhaps a negative; ``places`` where there is evidence from place to place, ``nodes`` where
        there are some.
    """
    value = explanation.value[row] if explanation.explained is None else explanation.explained[row]
    whole = None if explanation.explained is None else float(value)
    data: Data = {
        "method": explanation.method,
        "measure": explanation.measure,
        "value": round(float(explanation.value[row]), DIGITS),
        "explained": None if whole is None else round(whole, DIGITS),
        "words": sentence(explanation, row),
        "maps": [map_data(each[row], whole is not None) for each in explanation.maps],
    }
    if explanation.pairs is not None and explanation.grid is not None:
        pairs = explanation.pairs[row]
        data["places"] = {
            "grid": list(explanation.grid),
            "query": counterparts(pairs, float(value)),
            "match": counterparts(pairs.T, float(value)),
        }
    if explanation.nodes is not None:
        data["nodes"] = strongest_nodes(explanation.nodes, row, node_maps)
    return data


def map_data(values: Tensor, is_sum: bool = False) -> Data:
    """A map in whole percent of its largest cell.

    Args:
        values: ``(h, w)``.
        is_sum: whether its cells sum to what is explained, so that each has a share.

    Returns:
        ``grid``, height and width; ``cells``, row by row from ``-FULL`` to ``FULL``; ``peak``, what the largest cell is
        of the sum of all, ``None`` without a sum.
    """
    if max(values.shape) > SIDE:
        values = pooled(values[None], SIDE)[0]
    cells = values.detach().cpu().double().flatten()
    largest = float(cells.abs().max())
    scaled = (cells * FULL / largest).round().int().tolist() if largest > 0 else [0] * cells.numel()
    total = float(cells.sum())
    peak = round(largest / total, 4) if is_sum and abs(total) > 1e-9 else None
    return {"grid": list(values.shape), "cells": scaled, "peak": peak}


def counterparts(pairs: Tensor, whole: float) -> list[list[list[float]]]:
    """With which places each place adds most, and how much.

    Args:
        pairs: ``(R, R')``, what two places add together.
        whole: that everything is a share of.

    Returns:
        For each of R places up to `COUNTERPARTS` of ``[place, share in permille]``, the strongest first; none of those
        that add less than half a permille.
    """
    if abs(whole) < 1e-9:
        return [[] for _ in pairs]
    permille = (1000 * pairs.detach().cpu().double() / whole).round()
    first = permille.topk(min(COUNTERPARTS, pairs.shape[1]), dim=1)
    return [
        [[place, int(share)] for place, share in zip(*row, strict=True) if share > 0]
        for row in zip(first.indices.tolist(), first.values.tolist(), strict=True)
    ]


def strongest_nodes(nodes: Nodes, row: int, node_maps: Sequence[tuple[Tensor, Tensor]]) -> list[Data]:
    """The nodes that add most to a pair's distance.

    Args:
        nodes: of pairs.
        row: which of them.
        node_maps: per level the maps ``(r, h, w)`` of all nodes in query and match.

    Returns:
        Of each ``level`` and ``node`` counted from 1 and 0, ``share`` of the distance, ``reliability``, ``difference``,
        ``sensitivity``, ``below`` as ``[node, weight]`` of those that rectify it, and where it looks in both, ``maps``.
    """
    added = (nodes.sensitivity[row] * nodes.difference[row]).double()  # (L, r)
    whole = float(added.sum().clamp(min=1e-12))
    first = added.flatten().topk(min(NODES, added.numel())).indices.tolist()
    found = []
    for place in first:
        level, node = divmod(place, added.shape[1])
        parts = (nodes.reliability, nodes.difference, nodes.sensitivity)
        numbers = [round(float(part[row, level, node]), 4) for part in parts]
        found.append(
            {"level": level + 1, "node": node, "share": round(float(added[level, node]) / whole, 4)}
            | dict(zip(("reliability", "difference", "sensitivity"), numbers, strict=True))
            | {"below": _below(nodes, level, node)}
            | ({"maps": [map_data(each[node]) for each in node_maps[level]]} if node_maps else {})
        )
    return found


def _below(nodes: Nodes, level: int, node: int) -> list[list[float]]:
    if level == 0:
        return []
    weights = nodes.edges[level - 1][node].detach().cpu()
    first = weights.topk(min(BELOW, len(weights)))
    pairs = zip(first.indices.tolist(), first.values.tolist(), strict=True)
    return [[other, round(weight, 3)] for other, weight in pairs if weight > 0]


@torch.no_grad()
def maps_of_nodes(model: Any, images: Tensor) -> list[Tensor]:
    """Normalised maps of an AVSL's nodes on images ``(N, 3, H, W)``: per level ``(N, r, h, w)``, not negative."""
    from lookalike.methods.avsl.attention import normalised_maps

    return [normalised_maps(level, "map") for level in model(images, with_maps=True).maps]
