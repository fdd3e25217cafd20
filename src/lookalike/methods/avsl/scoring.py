"""Retrieval by AVSL's overall distance, exact or with weights that do not depend on the pair."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.methods.avsl.exact_search import Side
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.retrieval import certified_queries, exact_steps, fixed_error
from lookalike.methods.avsl.retrieval import fixed_weights as mean_weights
from lookalike.metrics.search import Search, Tensors

ERROR = "fixed_weights_error"
EVERY_PAIR = 1_000  # images of a gallery in which every pair takes a second; bounds pay beyond
SIDES = ("query", "gallery")
WITHOUT_RELIABILITY = ("top", "concat")


def graph(model: nn.Module, query: Tensors, gallery: Tensors, search: Search) -> dict[str, float]:
    """Metrics of a search by distance: of every pair in blocks, or in a large gallery by certified bounds.

    Bounds are those of `lookalike.methods.avsl.retrieval`, in float64 and with the same metrics as every pair. Cameras,
    levels, a learned reliability and the variants without one have none, and take every pair, as does a search that
    keeps the scores themselves.

    Args:
        model: an `AVSL`.
        query: state of Q images, see `Representation.state`.
        gallery: state of G images.
        search: what is counted.
    """
    network = cast(AVSL, model)
    images = Representation.from_state(query), Representation.from_state(gallery)
    if len(search.gallery_labels) <= EVERY_PAIR or not _bounded(network, search):
        return search.by_score(*images, score=lambda some, others: -network.distance(some, others))
    one, other = (Side(name, each.embeddings, each.statistics) for name, each in zip(SIDES, images, strict=True))
    learned = _parameters(network)
    scale = learned.pop("scale")
    per_query, report = certified_queries(
        one,
        other,
        exact_steps(one, **learned),
        scale,
        search.query_labels,
        search.gallery_labels,
        self_match=search.self_match,
        count_query_in_r=search.count_query_in_r,
        average_precision=search.average_precision,
    )
    print(f"certified bounds: {report['exact_share']:.2%} of the pairs evaluated over the whole graph")
    return search.by_queries(per_query)


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
    if network.variant in WITHOUT_RELIABILITY:
        raise ValueError(f"variant {network.variant!r} has no weights that depend on the pair; score it by 'graph'")
    sides = Representation.from_state(query), Representation.from_state(gallery)
    parameters = _parameters(network)
    with torch.no_grad():
        weights = mean_weights(sides[1].statistics, **parameters)
        error = fixed_error(sides[0].statistics, sides[1].statistics, weights, **parameters)
        vectors = weighted_vectors(sides[0], weights), weighted_vectors(sides[1], weights)  # (Q, L r), (G, L r)
    return search.by_score(*vectors, score=_closeness) | {ERROR: error}


def weighted_vectors(images: Representation, weights: list[Tensor]) -> Tensor:
    """One vector per image ``(N, L r)``, float64, whose squared distances are those by the weights: ``sqrt(w) u``.

    Args:
        images: N images.
        weights: per level ``(r,)``, of `lookalike.methods.avsl.retrieval.fixed_weights`.
    """
    pairs = zip(images.embeddings, weights, strict=True)
    return torch.cat([F.normalize(each.double(), dim=1, eps=1e-12) * w.double().sqrt() for each, w in pairs], dim=1)


def _bounded(network: AVSL, search: Search) -> bool:
    """Whether bounds exist for the network's distances and for the metrics of the search."""
    counted = search.query_cameras is None and not search.levels and not search.keeps_scores
    return counted and network.variant not in WITHOUT_RELIABILITY and not len(network.learned_statistics)


def _parameters(network: AVSL) -> dict[str, Any]:
    """Parameters of the graph: ``alpha``, ``beta`` and ``edges`` of its levels, and its ``scale``."""
    of_levels = {"alpha": [None, *network.alpha], "beta": [None, *network.beta], "edges": network.edges()}
    return {**of_levels, "scale": network.sigmoid_scale}


def _closeness(query: Tensor, gallery: Tensor) -> Tensor:
    """Minus the squared distances ``(Q, G)``."""
    # Written out, so that no (Q, G, L r) differences are held.
    return 2 * query @ gallery.T - query.square().sum(dim=1)[:, None] - gallery.square().sum(dim=1)
