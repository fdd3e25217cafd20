"""Structural similarity of the candidates that can still be among the first, and of no others.

Whatever a plan brings together, no location of one image can find more similarity in the other image than its best
location there has. So the plan's similarity is at most the mean of the best, weighted by either marginal, which costs
next to nothing beside the plan; a candidate that even so does not reach the first ones needs no plan.

Source: the bound is the relaxation of Kusner et al., "From Word Embeddings to Document Distances" (ICML 2015), section
4, which drops one of a plan's two marginals; that it serves DIML's ranking is ours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.representation import Representation
from lookalike.methods.diml.similarity import of_candidates

SOLVED = 2**9  # pairs for which plans are sought at once, where memory allows: a step has a price of its own
VALUES = 2**24  # of the correlations that are kept at once
ROUNDING = 64  # times the distance of floats at 1: what sums over a plan may be off by


def leading_similarity(
    query: Representation,
    gallery: Representation,
    candidates: Tensor,
    others: Tensor,
    depth: int,
    matching: Matching,
) -> Tensor:
    """Structural similarity of each query with the candidates whose sum with ``others`` may be among the largest.

    The first ``depth`` of the sums are those of `lookalike.methods.diml.similarity.candidate_similarity`, but for their
    last digit, which hangs on a pair's place among those that are solved together.

    Args:
        query: Q images.
        gallery: G images.
        candidates: ``(Q, K)`` int64, indices into the gallery.
        others: ``(Q, K)``, what each similarity is added to.
        depth: how many of a query's sums are wanted, 1 to K.
        matching: how images are matched, by a solver that takes pairs one by one.

    Returns:
        ``(Q, K)``, minus infinity for candidates that are not among the first ``depth``.

    Raises:
        ValueError: as `candidate_similarity`, or if ``depth`` is outside 1 to K.
    """
    width = candidates.shape[1]
    if not 1 <= depth <= width:
        raise ValueError(f"depth={depth} is outside [1, {width}], the candidates of a query")
    slack = 2 * matching.tolerance + ROUNDING * torch.finfo(query.regions.dtype).eps
    locations = query.regions.shape[1] * gallery.regions.shape[1]
    some = max(1, min(VALUES // (locations * width), SOLVED // depth))
    result = torch.full_like(candidates, -torch.inf, dtype=query.regions.dtype)
    for start in range(0, len(candidates), some):
        rows = slice(start, start + some)
        pairs = _compared(matching, query[rows], gallery, candidates[rows])
        most = others[rows] + (_ceiling(*pairs) + slack)
        first = torch.zeros_like(most, dtype=torch.bool).scatter_(1, most.topk(depth, dim=1).indices, True)
        _solve(matching, *pairs, first, result[rows])
        reached = (others[rows] + result[rows]).masked_fill(~first, torch.inf).amin(dim=1, keepdim=True)
        _solve(matching, *pairs, ~first & (most >= reached), result[rows])
    return result


def _compared(
    matching: Matching, query: Representation, gallery: Representation, candidates: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Correlation ``(q, K, R, R')`` and marginals ``(q, K, R)``, ``(q, K, R')`` of every pair, a block at a time."""
    counts = query.regions.shape[1], gallery.regions.shape[1]
    correlation, *sides = (
        query.regions.new_empty(*candidates.shape, *shape) for shape in (counts, counts[:1], counts[1:])
    )
    for rows, columns in matching.blocks(query.regions, gallery.regions, candidates.shape[1]):
        regions, vectors = of_candidates(candidates[rows, columns], gallery.regions, gallery.global_vector)
        found = matching.compared(query.regions[rows], query.global_vector[rows], regions, vectors)
        for whole, part in zip((correlation, *sides), found, strict=True):
            whole[rows, columns] = part
    return correlation, sides[0], sides[1]


def _ceiling(correlation: Tensor, query_marginal: Tensor, gallery_marginal: Tensor) -> Tensor:
    """What no plan's similarity exceeds, ``(q, K)``."""
    by_query = (query_marginal * correlation.amax(dim=3)).sum(dim=2)
    return torch.minimum(by_query, (gallery_marginal * correlation.amax(dim=2)).sum(dim=2))


def _solve(
    matching: Matching,
    correlation: Tensor,
    query_marginal: Tensor,
    gallery_marginal: Tensor,
    wanted: Tensor,
    result: Tensor,
) -> None:
    """Enter the similarities of the wanted pairs ``(q, K)`` bool."""
    query, candidate = wanted.nonzero(as_tuple=True)
    for start in range(0, len(query), SOLVED):
        at = query[start : start + SOLVED], candidate[start : start + SOLVED]
        between = correlation[at]  # (n, R, R')
        plan = matching.plans(1 - between, query_marginal[at], gallery_marginal[at])
        result[at] = (plan * between).sum(dim=(-2, -1)).to(result.dtype)
