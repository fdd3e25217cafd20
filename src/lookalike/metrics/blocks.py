"""Scores of a block of queries against the whole gallery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, Self, TypeVar

from torch import Tensor

from lookalike.metrics.cosine import exact_cosine, fixed_point_pair


class Rows(Protocol):
    """Anything that has a length and can be sliced, as a tensor can by its first axis."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def __getitem__(self, rows: slice, /) -> Self:
        """Some of the rows."""
        ...


Representation = TypeVar("Representation", bound=Rows)
Score = Literal["cosine"] | Callable[[Representation, Representation], Tensor]


def score_blocks(
    query: Representation, gallery: Representation, score: Score[Representation]
) -> Callable[[int, int], Tensor]:
    """A function ``(start, stop) -> (stop - start, G)`` of the scores of these queries.

    Args:
        query: Q queries; ``(Q, D)`` float for ``"cosine"``, which normalises.
        gallery: G gallery items, ``(G, D)``.
        score: ``"cosine"``, exact and float64, or a function of some queries and the gallery.

    Raises:
        ValueError: if ``score`` is unknown, or the embeddings do not fit it; when called, if ``score`` returns anything
            but a float tensor of the right shape.
    """
    if score == "cosine":
        if not isinstance(query, Tensor) or not isinstance(gallery, Tensor):
            raise ValueError(f"score='cosine' needs tensors, not {type(query).__name__} and {type(gallery).__name__}")
        query_parts, gallery_parts = fixed_point_pair(query, gallery)
        return lambda start, stop: exact_cosine(tuple(part[start:stop] for part in query_parts), gallery_parts)
    if not callable(score):
        raise ValueError(f"score={score!r} is neither 'cosine' nor a function of a block of queries and the gallery")

    def scores_of(start: int, stop: int) -> Tensor:
        scores = score(query[start:stop], gallery)
        if scores.shape != (stop - start, len(gallery)) or not scores.is_floating_point():
            raise ValueError(
                f"score must return ({stop - start}, {len(gallery)}) float, not {tuple(scores.shape)} {scores.dtype}"
            )
        return scores

    return scores_of
