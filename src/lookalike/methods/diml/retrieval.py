"""Rankings whose head is ordered anew by structure.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.metrics.ranking import refuse_nan

Structural = Tensor | Callable[[int, Tensor], Tensor]
Score = Literal["sum", "structural"]


def truncated_ranking(
    global_similarity: Tensor, structural: Structural, truncation: int, *, self_match: bool, score: Score = "sum"
) -> Tensor:
    """Gallery in the order of global similarity, its first ``truncation`` items reordered by global plus structural.

    Ties keep the global order, which itself is stable: greater similarity first, lower index first.

    Differs: the released code orders the candidates of the largest of several K and takes the first K of that list, so
    that for a smaller K some items appear twice and others never.

    Args:
        global_similarity: ``(Q, G)``.
        structural: ``(Q, G)``, or a function of the index of a query and of its candidates ``(K,)`` int64 that returns
            their similarities ``(K,)``.
        truncation: K, 0 or more; a larger one than the gallery means all of it.
        self_match: query i is gallery item i; it is no candidate and comes last.
        score: ``sum``, or ``structural`` to reorder by the structural similarity alone (Table 2, row SS; with a K
            beyond the gallery it is all that counts).

    Returns:
        ``(Q, G)`` int64.

    Raises:
        ValueError: if shapes do not belong together, ``truncation`` is negative, ``score`` is unknown or a similarity
            is NaN.
    """
    if global_similarity.ndim != 2:
        raise ValueError(f"global_similarity has shape {tuple(global_similarity.shape)}, it must be (Q, G)")
    queries, gallery = global_similarity.shape
    if self_match and queries != gallery:
        raise ValueError(f"self_match=True needs Q = G, not {queries} queries and {gallery} gallery items")
    if isinstance(structural, Tensor) and structural.shape != global_similarity.shape:
        raise ValueError(f"structural has shape {tuple(structural.shape)}, it must be {(queries, gallery)}")
    check_truncations([truncation])
    refuse_nan(global_similarity)
    ranking = global_similarity.argsort(dim=1, descending=True, stable=True)  # (Q, G)
    if self_match:
        itself = torch.arange(queries, device=ranking.device).unsqueeze(1)
        # Every row holds its own query once, so all stay equally long without it.
        ranking = torch.cat([ranking[ranking != itself].view(queries, gallery - 1), itself], dim=1)
    width = min(truncation, gallery - self_match)
    candidates = ranking[:, :width]  # (Q, K)
    if isinstance(structural, Tensor):
        scores = structural.gather(1, candidates)
    elif candidates.numel():
        scores = torch.stack([_scores_of(structural, query, items) for query, items in enumerate(candidates)])
    else:
        scores = global_similarity[:, :width]  # there is nothing to ask for
    values = global_similarity.gather(1, candidates)  # (Q, K)
    return with_heads(ranking, values, scores, [truncation], score)[0]


def with_heads(
    ranking: Tensor, global_similarity: Tensor, structural: Tensor, truncations: Sequence[int], score: Score
) -> list[Tensor]:
    """A ranking with its first K items reordered, for several K.

    Args:
        ranking: ``(Q, G)`` int64.
        global_similarity: ``(Q, G)``, or ``(Q, K)`` of as many first items as the largest K.
        structural: ``(Q, K)`` of as many first items as the largest K.
        truncations: every K.
        score: as of `truncated_ranking`.
    """
    heads = [reordered(ranking[:, :k], global_similarity[:, :k], structural[:, :k], score) for k in truncations]
    return [torch.cat([head, ranking[:, head.shape[1] :]], dim=1) for head in heads]


def reordered(candidates: Tensor, global_similarity: Tensor, structural: Tensor, score: Score = "sum") -> Tensor:
    """Candidates by their score, ties in the order given.

    Args:
        candidates: ``(Q, K)`` int64.
        global_similarity: ``(Q, K)``.
        structural: ``(Q, K)``.
        score: ``sum`` or ``structural``.

    Returns:
        ``(Q, K)`` int64.

    Raises:
        ValueError: if ``score`` is unknown or a structural similarity is NaN.
    """
    require_known("score", score, get_args(Score))
    refuse_nan(structural)
    total = global_similarity + structural if score == "sum" else structural  # (Q, K)
    return candidates.gather(1, total.argsort(dim=1, descending=True, stable=True))


def check_truncations(truncations: Sequence[int]) -> None:
    """Refuse a negative K.

    Raises:
        ValueError: naming it.
    """
    for truncation in truncations:
        if truncation < 0:
            raise ValueError(f"truncation={truncation} must be 0 or more")


def _scores_of(structural: Callable[[int, Tensor], Tensor], query: int, candidates: Tensor) -> Tensor:
    scores = structural(query, candidates)
    if scores.shape != candidates.shape:
        raise ValueError(f"structural returned shape {tuple(scores.shape)}, it must be {tuple(candidates.shape)}")
    return scores
