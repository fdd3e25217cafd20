"""Structural matching of images, whatever network represented them: similarities, rankings and explanations.

Where only the head of a ranking counts, `leading_similarity` leaves out candidates that cannot reach it. Whatever a
plan brings together, no location of one image can find more similarity in the other image than its best location there
has. So the plan's similarity is at most the mean of the best, weighted by either marginal, which costs next to nothing
beside the plan; a candidate that even so does not reach the first ones needs no plan.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3. The bound is the
relaxation of Kusner et al., "From Word Embeddings to Document Distances" (ICML 2015), section 4, which drops one of a
plan's two marginals; that it serves DIML's ranking is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TypedDict, get_args

import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.methods.diml.matching import Marginal, Matching, Solver
from lookalike.methods.diml.representation import Explanation, Representation
from lookalike.methods.diml.retrieval import Score, check_truncations, with_heads
from lookalike.methods.diml.similarity import candidate_similarity, of_candidates, structural_similarity
from lookalike.metrics.ranking import nearest

# Pairs for which plans are sought at once, where memory allows: a step has a price of its own.
SOLVED = 2**9
SOLVED_DEVICE = 2**14
VALUES = 2**24  # of the correlations that are kept at once
ROUNDING = 64  # times the distance of floats at 1: what sums over a plan may be off by


class MatcherOptions(TypedDict, total=False):
    """Keywords of `StructuralMatcher` beside ``truncation``, for callers that hand them on to one."""

    score: Score
    marginal: Marginal
    reg: float
    tolerance: float
    solver: Solver


@dataclass(frozen=True)
class StructuralMatcher:
    """Compares images by their locations, and reorders the first of a ranking by that.

    The rows of Table 2: ``SS`` is ``marginal="uniform", score="structural", truncation=None`` (on large data sets a
    large ``truncation``, for the whole gallery is then out of reach), ``SS + MM`` is ``marginal="uniform"``, and
    ``SS + MM + CC`` the default.

    Differs: the paper combines both similarities by an average in training and does not say how at test time; the
    released code adds them, which is the same order.

    Attributes:
        truncation: K, how many of the gallery are reordered; ``None`` for all.
        score: what candidates are ordered by, ``sum`` of global and structural similarity, or ``structural`` alone.
        marginal: weights of the locations, as of `Matching`.
        reg: weight of the entropy, as of `Matching`.
        tolerance: largest error of the plans, as of `Matching`.
        solver: what finds the plans, as of `Matching`.

    Raises:
        ValueError: if an option is unknown or out of range.
    """

    truncation: int | None = 100
    score: Score = "sum"
    marginal: Marginal = "cross_correlation"
    reg: float = 0.05
    tolerance: float = 1e-6
    solver: Solver = "sinkhorn"

    def __post_init__(self) -> None:
        require_known("score", self.score, get_args(Score))
        check_truncations([] if self.truncation is None else [self.truncation])
        _ = self.matching  # which checks the others

    @cached_property
    def matching(self) -> Matching:
        """Matching of two images by the options of this matcher."""
        return Matching(self.marginal, self.reg, self.tolerance, self.solver)

    def similarity(self, query: Representation, gallery: Representation) -> Tensor:
        """Score ``(Q, G)`` of every pair, by which candidates are ordered."""
        sides = query.regions, query.global_vector, gallery.regions, gallery.global_vector
        structural = structural_similarity(*sides, **asdict(self.matching))
        return structural if self.score == "structural" else query.global_vector @ gallery.global_vector.T + structural

    def rank(
        self, query: Representation, gallery: Representation, *, self_match: bool = False, depth: int | None = None
    ) -> Tensor:
        """Gallery in the order of global similarity, the first ``truncation`` items reordered.

        Global similarities are exact (`lookalike.metrics.similarity`), so that duplicates tie; ties keep the global
        order, and there lower indices come first.

        Args:
            query: Q images.
            gallery: G images.
            self_match: query i is gallery item i; it is no candidate and comes last.
            depth: ranks wanted, the query itself not among them; ``None`` for the whole gallery.

        Returns:
            ``(Q, G)`` int64, or ``(Q, depth)``.

        Raises:
            ValueError: if the sides do not belong together, or ``depth`` is outside 1 to the number of other items.
        """
        truncations = [len(gallery) if self.truncation is None else self.truncation]
        return self.rankings(query, gallery, truncations, self_match=self_match, depth=depth)[0]

    @torch.no_grad()
    def rankings(
        self,
        query: Representation,
        gallery: Representation,
        truncations: Sequence[int],
        *,
        self_match: bool = False,
        depth: int | None = None,
    ) -> list[Tensor]:
        """`rank` for several K, each reordering its own first K items, with every plan computed once.

        Args:
            query: Q images.
            gallery: G images.
            truncations: every K; larger ones than the gallery mean all of it.
            self_match: query i is gallery item i; it is no candidate and comes last.
            depth: ranks wanted, the query itself not among them; ``None`` for the whole gallery.

        Returns:
            One ranking for every K, in their order.

        Raises:
            ValueError: if the sides do not belong together, ``depth`` is outside 1 to the number of other items, or a K
                is negative.
        """
        check_truncations(truncations)
        width = len(gallery) - self_match
        ranks = width if depth is None else depth
        if depth is not None and not 1 <= depth <= width:
            raise ValueError(
                f"depth={depth} is outside [1, {width}], the gallery{' less the query' if self_match else ''}"
            )
        longest = min(max(truncations, default=0), width)
        values, candidates = nearest(
            query.global_vector, gallery.global_vector, max(ranks, longest), self_match=self_match
        )
        heads = candidates[:, :longest]
        if len(truncations) == 1 and ranks < longest and self.solver != "released":
            others = values[:, :longest] if self.score == "sum" else torch.zeros_like(values[:, :longest])
            structural = leading_similarity(query, gallery, heads, others, ranks, self.matching)
        else:
            sides = query.regions, query.global_vector, gallery.regions, gallery.global_vector
            structural = candidate_similarity(*sides, heads, self.matching)  # (Q, longest)
        rankings = with_heads(candidates, values, structural, truncations, self.score)
        rankings = [ranking[:, :ranks] for ranking in rankings]
        if not self_match or depth is not None:
            return rankings
        itself = torch.arange(len(query), device=candidates.device).unsqueeze(1)
        return [torch.cat([ranking, itself], dim=1) for ranking in rankings]

    @torch.no_grad()
    def explain(self, query: Representation, gallery: Representation) -> Explanation:
        """Contributions of all pairs of locations to the similarity of every pair of images.

        Holds ``3 R R`` values per pair and is meant for few of them.
        """
        match = self.matching(query.regions, query.global_vector, gallery.regions, gallery.global_vector)
        return Explanation(query.global_vector @ gallery.global_vector.T, match)


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
    some = max(1, min(VALUES // (locations * width), _solved(query.regions) // depth))
    result = torch.full_like(candidates, -torch.inf, dtype=query.regions.dtype)
    for start in range(0, len(candidates), some):
        rows = slice(start, start + some)
        pairs = _compared(matching, query[rows], gallery, candidates[rows])
        most = others[rows] + (_ceiling(*pairs) + slack)  # (q, K), above every sum
        # Plans for those that promise most, then for all that may still beat the least of these.
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
    """Upper bound ``(q, K)`` of the similarity under any plan."""
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
    some = _solved(correlation)
    for start in range(0, len(query), some):
        at = query[start : start + some], candidate[start : start + some]
        between = correlation[at]  # (n, R, R')
        plan = matching.plans(1 - between, query_marginal[at], gallery_marginal[at])
        result[at] = (plan * between).sum(dim=(-2, -1)).to(result.dtype)


def _solved(values: Tensor) -> int:
    return SOLVED if values.device.type == "cpu" else SOLVED_DEVICE
