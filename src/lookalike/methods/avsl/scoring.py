"""Retrieval by AVSL's overall distance, exact or with weights that do not depend on the pair."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.retrieval import fixed_error
from lookalike.methods.avsl.retrieval import fixed_weights as mean_weights
from lookalike.metrics.search import Search, Tensors

ERROR = "fixed_weights_error"


def graph(model: nn.Module, query: Tensors, gallery: Tensors, search: Search) -> dict[str, float]:
    """Metrics of a search by distance, in blocks.

    Args:
        model: an `AVSL`.
        query: state of Q images, see `Representation.state`.
        gallery: state of G images.
        search: what is counted.
    """
    distance = cast(AVSL, model).distance
    sides = Representation.from_state(query), Representation.from_state(gallery)
    return search.by_score(*sides, score=lambda some, others: -distance(some, others))


def fixed_weights(model: nn.Module, query: Tensors, gallery: Tensors, search: Search) -> dict[str, float]:
    """Metrics of a search by one weighted vector per image: each node has its weight at the gallery's mean statistics.

    Args:
        model: an `AVSL` that compares over its graph.
        query: state of Q images, see `Representation.state`.
        gallery: state of G images.
        search: what is counted.

    Returns:
        The metrics, and as `ERROR` the largest relative error that any pair's distance can have by it.

    Raises:
        ValueError: for a variant whose distance has no reliability.
    """
    network = cast(AVSL, model)
    if network.variant in ("top", "concat"):
        raise ValueError(f"variant {network.variant!r} has no weights that depend on the pair; score it by 'graph'")
    sides = Representation.from_state(query), Representation.from_state(gallery)
    parameters: dict[str, Any] = {"alpha": [None, *network.alpha], "beta": [None, *network.beta]}
    parameters |= {"edges": network.edges(), "scale": network.sigmoid_scale}
    with torch.no_grad():
        weights = mean_weights(sides[1].statistics, **parameters)
        error = fixed_error(sides[0].statistics, sides[1].statistics, weights, **parameters)
        vectors = weighted_vectors(sides[0], weights), weighted_vectors(sides[1], weights)
    return search.by_score(*vectors, score=_closeness) | {ERROR: error}


def weighted_vectors(images: Representation, weights: list[Tensor]) -> Tensor:
    """One vector per image ``(N, L r)``, float64, whose squared distances are those by the weights: ``sqrt(w) u``.

    Args:
        images: N images.
        weights: per level ``(r,)``, of `lookalike.methods.avsl.retrieval.fixed_weights`.
    """
    pairs = zip(images.embeddings, weights, strict=True)
    return torch.cat([F.normalize(each.double(), dim=1, eps=1e-12) * w.double().sqrt() for each, w in pairs], dim=1)


def _closeness(query: Tensor, gallery: Tensor) -> Tensor:
    """Minus the squared distances ``(Q, G)``."""
    return 2 * query @ gallery.T - query.square().sum(dim=1)[:, None] - gallery.square().sum(dim=1)
