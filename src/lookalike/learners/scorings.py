"""How representations are compared when they are evaluated, by the name that recipes give it."""

from __future__ import annotations

from lookalike.methods.avsl.scoring import fixed_weights, graph
from lookalike.methods.contextual.retrieval import shared_neighbours
from lookalike.methods.diml.scoring import structural_matching
from lookalike.metrics.search import Scoring, cosine

SCORINGS: dict[str, Scoring] = {
    "cosine": cosine,
    "fixed_weights": fixed_weights,
    "graph": graph,
    "shared_neighbours": shared_neighbours,
    "structural_matching": structural_matching,
}
# The others compare what was kept of the images, whatever network that was.
READ_THE_MODEL = frozenset({"fixed_weights", "graph"})
# These compare pictures by their neighbours, so that a part of the queries cannot be ranked alone.
NEED_ALL = frozenset({"shared_neighbours"})
