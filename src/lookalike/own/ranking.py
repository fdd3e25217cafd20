"""Ways of comparing pictures: what is kept of one, and which of many come first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import cast

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.explanations.decomposition import SIDE, located_by
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation as Levels
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import DIML, LocatedEmbedder
from lookalike.methods.diml.representation import Representation as Located
from lookalike.methods.diml.retrieval import reordered
from lookalike.models.embedder import Embedder
from lookalike.own.index import Index, Tensors
from lookalike.tensors import unit

REORDERED = 100  # pictures whose order structural matching decides, as in DIML's paper
First = tuple[Tensor, Tensor]  # places of the first pictures (K,) int64, and their scores (K,)


@dataclass(frozen=True)
class Way:
    """How pictures are compared.

    Attributes:
        measure: what scores are.
        explained_by: method of `lookalike.explain` whose measure it is, or is part of it.
        keep: of a network and images ``(N, 3, H, W)``, tensors with N rows.
        first: of a network, what is kept of a query (tensors with one row), an index and a number, the first pictures.
    """

    measure: str
    explained_by: str | None
    keep: Callable[[nn.Module, Tensor], Tensors]
    first: Callable[[nn.Module, Tensors, Index, int], First]


def ways_of(network: nn.Module) -> dict[str, Way]:
    """The ways in which a network's pictures can be compared, its own first."""
    if isinstance(network, AVSL):
        return {"graph": WAYS["graph"]}
    embedder = network.embedder if isinstance(network, LocatedEmbedder) else network
    names = ["structure", "cosine"] if isinstance(network, LocatedEmbedder) else ["cosine", "structure"]
    if isinstance(embedder, Embedder) and embedder.parts is not None:
        names = ["cosine"]  # each stripe has a layer of its own
    return {name: WAYS[name] for name in names}


def way_of(network: nn.Module, name: str | None) -> tuple[str, Way]:
    """A way by its name, or the network's own.

    Raises:
        ValueError: for a way in which this network's pictures cannot be compared.
    """
    ways = ways_of(network)
    chosen = name or next(iter(ways))
    require_known("way", chosen, ways)
    return chosen, ways[chosen]


def _embeddings(network: nn.Module, images: Tensor) -> Tensors:
    if isinstance(network, LocatedEmbedder):
        return {"embedding": network.represent(images).global_vector}
    return {"embedding": unit(network(images))}


def _regions(network: nn.Module, images: Tensor) -> Tensors:
    """In 16 bits, which moves a similarity by about 1e-4: a hundred thousand pictures take 1.6 GB and not 3.3."""
    seen = _located(network).represent(images)
    return {"embedding": seen.global_vector, "regions": seen.regions.half()}


@cache
def _located(network: nn.Module) -> LocatedEmbedder:
    return network if isinstance(network, LocatedEmbedder) else located_by(cast(Embedder, network), SIDE)


def _levels(network: nn.Module, images: Tensor) -> Tensors:
    levels: Levels = cast(AVSL, network)(images)
    return levels.state()


def _by_cosine(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    return _greatest(index.scored(lambda part: part["embedding"] @ query["embedding"][0]), count)


def _by_structure(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    """The first by cosine in the order of cosine plus structural similarity."""
    places, cosine = _by_cosine(network, query, index, max(count, REORDERED))
    kept = index.rows(places)
    matcher = network.matcher if isinstance(network, DIML) else StructuralMatcher()
    asked, found = _as_located(query), _as_located(kept)
    match = matcher.matching(asked.regions, asked.global_vector, found.regions[None], found.global_vector[None])
    structural = match.similarity[0]
    order = reordered(torch.arange(len(places))[None], cosine[None], structural[None])[0][:count]
    return places[order], (cosine + structural)[order]


def _as_located(kept: Tensors) -> Located:
    return Located(kept["regions"].float(), kept["embedding"])


def _by_graph(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    asked = Levels.from_state(query)
    distance = cast(AVSL, network).distance
    places, score = _greatest(index.scored(lambda part: -distance(asked, Levels.from_state(part))[0]), count)
    return places, -score


def _greatest(scores: Tensor, count: int) -> First:
    """Places of the greatest scores, and these; the first place on ties."""
    values, places = scores.sort(descending=True, stable=True)
    return places[:count], values[:count]


WAYS = {
    "cosine": Way("cosine", None, _embeddings, _by_cosine),
    "structure": Way("cosine + structural similarity", "structure", _regions, _by_structure),
    "graph": Way("distance", "graph", _levels, _by_graph),
}
