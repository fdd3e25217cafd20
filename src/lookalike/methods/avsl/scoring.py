"""Retrieval by AVSL's overall distance."""

from __future__ import annotations

from typing import cast

from torch import nn

from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.metrics.search import Search, Tensors


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
