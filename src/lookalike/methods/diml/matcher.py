"""Structural matching of images, whatever network represented them: similarities, rankings and explanations.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import get_args

import torch
from torch import Tensor

from lookalike.checks import require_known
from lookalike.methods.diml.leading import leading_similarity
from lookalike.methods.diml.marginals import Marginal
from lookalike.methods.diml.matching import Matching, Solver
from lookalike.methods.diml.ranking import Score, check_truncations, with_heads
from lookalike.methods.diml.representation import Explanation, Representation
from lookalike.methods.diml.similarity import candidate_similarity, structural_similarity
from lookalike.metrics.ranking import nearest


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
        marginal: weights of the locations: ``cross_correlation``, ``uniform`` or ``swapped``, see `marginals`.
        reg: weight of the entropy.
        tolerance: largest error of the plans, see `transport_plan`.
        solver: what finds the plans: ``sinkhorn``, ``exact`` or ``released``, see `Matching`.

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
        """How two images are matched."""
        return Matching(self.marginal, self.reg, self.tolerance, self.solver)

    def similarity(self, query: Representation, gallery: Representation) -> Tensor:
        """What candidates are ordered by, ``(Q, G)``, for every pair."""
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
        """What every pair of locations contributes to the similarity of every pair of images.

        Holds ``3 R R`` values per pair and is meant for few of them.
        """
        match = self.matching(query.regions, query.global_vector, gallery.regions, gallery.global_vector)
        return Explanation(query.global_vector @ gallery.global_vector.T, match)
