"""What a model keeps of images, and how alike it finds two of them: by the measure that a method explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from lookalike.explanations.graph import pair_nodes
from lookalike.explanations.quality.deletion import cosines
from lookalike.explanations.structure import METHOD as STRUCTURE
from lookalike.explanations.structure import SIDE, located_by
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import DIML, LocatedEmbedder
from lookalike.methods.diml.representation import Representation
from lookalike.models.embedder import Embedder


@dataclass(frozen=True)
class Scores:
    """A measure of likeness of pairs, without its explanation.

    Attributes:
        represent: images ``(N, 3, H, W)`` to what is kept of them.
        similarity: of N pairs of what is kept, ``(N,)`` float64; larger means closer, a distance with its sign changed.
    """

    represent: Callable[[Tensor], Any]
    similarity: Callable[[Any, Any], Tensor]


def scores_of(model: nn.Module, method: str) -> Scores:
    """The measure that a method of `lookalike.explain` explains.

    Args:
        model: in evaluation mode.
        method: ``structure``, or any other, which explains an AVSL model's distance and else the cosine.
    """
    if isinstance(model, AVSL):
        return Scores(model, lambda query, gallery: -pair_nodes(model, query, gallery)[0].double())
    if method == STRUCTURE:
        located = model if isinstance(model, LocatedEmbedder) else located_by(cast(Embedder, model), SIDE)
        matcher = model.matcher if isinstance(model, DIML) else StructuralMatcher()
        return Scores(located.represent, lambda query, gallery: _structural(matcher, query, gallery))
    embedder = model.embedder if isinstance(model, LocatedEmbedder) else model
    return Scores(embedder, cosines)


def _structural(matcher: StructuralMatcher, query: Representation, gallery: Representation) -> Tensor:
    one, other = query.to(torch.float64), gallery.to(torch.float64)
    match = matcher.matching(one.regions, one.global_vector, other.regions[:, None], other.global_vector[:, None])
    similarity: Tensor = match.similarity[:, 0]
    return similarity
