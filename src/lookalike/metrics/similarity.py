"""Cosine similarities that do not depend on how they are summed, and scores of blocks of queries.

A matrix product rounds differently with the block size, the number of threads, the library and the column's place
in the matrix, so equal images need not get equal scores. Here unit vectors are rounded to fixed point, so coarse that
every partial sum of products fits into a float64: the product is exact, and so is every tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor

HIGH_BITS = 26  # products of two such numbers are multiples of 2^-52, and their sums stay within [-1, 1]

PAIRS = 2**10  # scored one by one at once, so that their vectors stay in the cache


class NotFiniteError(ValueError):
    """Embeddings or scores have no place in an order, such as those of a training that diverged in its last step."""


def fixed_point(embeddings: Tensor) -> tuple[Tensor, ...]:
    """Unit vectors in fixed point, as one or two float64 parts that add up to them.

    Args:
        embeddings: ``(N, D)`` float, of any length above 0; a zero vector stays zero.

    Returns:
        ``(N, D)`` float64 multiples of ``2^-26``; for float64 input also the remainder, in multiples as fine as exact
        products allow (``2^-48`` for D = 512). The rounding error of a component is at most ``2^-27``, finer than that
        of a float32 product's sum; with the remainder at most ``2^-49``. No gradient passes.

    Raises:
        ValueError: if ``embeddings`` is not a matrix of floating-point numbers, or holds NaN or infinity.
    """
    if embeddings.ndim != 2 or embeddings.shape[1] < 1 or not embeddings.is_floating_point():
        raise ValueError(f"embeddings must be (N, D) float, not {tuple(embeddings.shape)} {embeddings.dtype}")
    embeddings = embeddings.detach()
    largest = torch.linalg.vector_norm(embeddings, math.inf, dim=1, keepdim=True).double()
    if not bool(largest.isfinite().all()):
        row = int((~largest.isfinite()).flatten().nonzero()[0])
        raise NotFiniteError(f"embedding {row} holds NaN or infinity; embeddings must be finite")
    unit = embeddings.double() / largest.where(largest > 0, 1)  # squares neither overflow nor underflow
    unit /= torch.linalg.vector_norm(unit, dim=1, keepdim=True).clamp_min(1)
    high = _round_to(unit, HIGH_BITS)
    if embeddings.dtype != torch.float64:
        return (high,)
    # |sum high * low| <= sqrt(D) 2^-27 by Cauchy-Schwarz, which must stay below 2^53 steps of the product's grid.
    low_bits = 2 * HIGH_BITS + 1 - math.ceil(math.log2(embeddings.shape[1]) / 2)
    return high, _round_to(unit - high, low_bits)


def fixed_point_pair(query: Tensor, gallery: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Both in fixed point, computed once where query and gallery are the same tensor.

    Raises:
        ValueError: if ``query (Q, D)`` and ``gallery (G, D)`` differ in D or dtype, or as ``fixed_point``.
    """
    if query.shape[1:] != gallery.shape[1:] or query.dtype != gallery.dtype:
        raise ValueError(
            "query and gallery must agree in D and dtype, "
            f"not {tuple(query.shape)} {query.dtype} and {tuple(gallery.shape)} {gallery.dtype}"
        )
    gallery_parts = fixed_point(gallery)
    return gallery_parts if query is gallery else fixed_point(query), gallery_parts


def exact_cosine(query: tuple[Tensor, ...], gallery: tuple[Tensor, ...]) -> Tensor:
    """Cosine similarity ``(Q, G)`` float64 of vectors from ``fixed_point``, the same bits however it is computed.

    With two parts the product of the remainders is left out (below ``D 2^-54``); the three others are exact, and only
    their sum is rounded.
    """
    return _sum_of_parts(query, tuple(part.T for part in gallery))


def exact_cosine_of_pairs(query: tuple[Tensor, ...], candidates: tuple[Tensor, ...]) -> Tensor:
    """The same for own candidates of each query: parts ``(Q, D)`` and ``(Q, M, D)`` give ``(Q, M)``."""
    rows = tuple(part.unsqueeze(1) for part in query)  # (Q, 1, D)
    return _sum_of_parts(rows, tuple(part.mT for part in candidates)).squeeze(1)


def in_float32(parts: tuple[Tensor, ...]) -> Tensor:
    """Vectors from ``fixed_point`` in single precision."""
    return sum(parts[1:], start=parts[0]).float()


def float32_error(dim: int) -> float:
    """Largest error of a cosine of vectors from ``in_float32``, summed in float32 in whatever order.

    Rounding both vectors costs two units of 2^-24, a sum of D products D more (Higham, "Accuracy and Stability of
    Numerical Algorithms", Eq. 3.5); four are to spare, also for lengths not quite 1.
    """
    units = (dim + 6) * 2.0**-24
    return units / (1 - units)


def _sum_of_parts(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> Tensor:
    product = left[0] @ right[0]
    if len(left) == 1:
        return product
    return product.add_((left[0] @ right[1]).add_(left[1] @ right[0]))


def _round_to(numbers: Tensor, bits: int) -> Tensor:
    return (numbers * 2.0**bits).round_().mul_(2.0**-bits)


@dataclass(frozen=True)
class Bounded:
    """Scores that are known up to an error, and a function that gives single ones exactly.

    Attributes:
        near: ``(Q, G)`` float32.
        error: largest difference to the exact score; 0 where that was only rounded, which keeps the order.
        exact: of the rows and columns ``(n,)`` of n pairs, their exact scores ``(n,)``.
    """

    near: Tensor
    error: float
    exact: Callable[[Tensor, Tensor], Tensor]

    @classmethod
    def rounded(cls, scores: Tensor) -> Self:
        """Of exact scores ``(Q, G)``."""
        return cls(scores.float(), 0.0, lambda rows, columns: scores[rows, columns])

    def rows(self, first: int, near: Tensor) -> Bounded:
        """Of consecutive queries from ``first`` on, whose bounds are these."""
        return Bounded(near, self.error, lambda rows, columns: self.exact(rows + first, columns))

    def some(self, queries: Tensor) -> Bounded:
        """Of queries ``(q,)`` int64 alone."""
        return Bounded(self.near[queries], self.error, lambda rows, columns: self.exact(queries[rows], columns))


def bounded_cosine(query: tuple[Tensor, ...], gallery: tuple[Tensor, ...], gallery_near: Tensor) -> Bounded:
    """`exact_cosine` of every pair but for the error of a product in float32, and of single pairs exactly.

    Args:
        query: Q vectors from ``fixed_point``.
        gallery: G vectors.
        gallery_near: the latter `in_float32`.
    """

    def exact(rows: Tensor, columns: Tensor) -> Tensor:
        scores = rows.new_empty(rows.shape, dtype=torch.float64)
        for start in range(0, len(rows), PAIRS):
            some = slice(start, start + PAIRS)
            ours = tuple(part.index_select(0, rows[some]) for part in query)
            theirs = tuple(part.index_select(0, columns[some]).unsqueeze(1) for part in gallery)
            scores[some] = exact_cosine_of_pairs(ours, theirs).squeeze(1)
        return scores

    if torch.get_float32_matmul_precision() != "highest":  # products would be off by more
        return Bounded.rounded(exact_cosine(query, gallery))
    with torch.autocast(gallery_near.device.type, enabled=False):
        return Bounded(in_float32(query) @ gallery_near.T, float32_error(gallery_near.shape[1]), exact)


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


def bounded_blocks(query: Tensor, gallery: Tensor) -> Callable[[int, int], Bounded]:
    """A function ``(start, stop)`` of the cosines of these queries with the gallery, as ``bounded_cosine`` gives them.

    Raises:
        ValueError: as ``fixed_point_pair``.
    """
    query_parts, gallery_parts = fixed_point_pair(query, gallery)
    near = in_float32(gallery_parts)
    return lambda start, stop: bounded_cosine(tuple(part[start:stop] for part in query_parts), gallery_parts, near)


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
