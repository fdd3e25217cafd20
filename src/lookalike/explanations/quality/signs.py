"""Which way a map points: some methods explain a similarity, others a distance."""

from __future__ import annotations

from torch import Tensor

from lookalike.checks import require_known
from lookalike.explanations.explanation import Explanation

TOWARDS_LIKENESS = {"cosine": 1, "structural similarity": 1, "distance": -1}  # sign of the evidence, by measure


def of_likeness(found: Explanation, role: int = 0) -> Tensor:
    """What makes a pair alike is high, what tells it apart low: the order in which `deletion` takes cells away.

    Args:
        found: of pairs; or of triplets, where the query's map speaks for the gallery image.
        role: 0 for the map of the query, 1 for that of the gallery image.

    Returns:
        ``(N, h, w)``, the map of a similarity, or that of a distance with its sign changed. Nothing is clipped.

    Raises:
        ValueError: for an unknown measure or another role.
    """
    require_known("measure", found.measure, TOWARDS_LIKENESS)
    if role not in (0, 1):
        raise ValueError(f"role={role} must be 0, the query, or 1, the gallery image")
    return TOWARDS_LIKENESS[found.measure] * found.maps[role]


def of_difference(found: Explanation, role: int = 1) -> Tensor:
    """What tells a pair apart is high: `of_likeness` with its sign changed.

    Of a map that shows only what is alike, never below zero, the lowest places count as the difference.
    """
    return -of_likeness(found, role)
