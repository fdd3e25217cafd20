"""R@1 alone, as searches between the epochs of a training need it."""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.metrics.blocks import Representation, Score, score_blocks
from lookalike.metrics.order import refuse_nan, working_set
from lookalike.metrics.positives import count_positives, sightings


def first_rank_recall(
    query: Representation,
    query_labels: Tensor,
    gallery: Representation,
    gallery_labels: Tensor,
    *,
    self_match: bool,
    score: Score[Representation] = "cosine",
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
) -> float:
    """``R@1`` of `lookalike.metrics.retrieval.retrieval_metrics_from_embeddings`, from the first item of each query.

    Args:
        query: ``(Q, D)`` float, or whatever ``score`` takes.
        query_labels: ``(Q,)`` int64.
        gallery: G items of the same.
        gallery_labels: ``(G,)`` int64.
        self_match: query i is gallery item i, and does not find itself.
        score: ``"cosine"``, or a function of a block of queries and the gallery that returns a new ``(b, G)``.
        query_cameras: ``(Q,)`` int64, or ``None`` where nothing is junk.
        gallery_cameras: ``(G,)`` int64, or ``None`` as well.

    Raises:
        ValueError: if labels or cameras do not belong together, a score is NaN, or no query has a positive.
    """
    cameras = {"query_cameras": query_cameras, "gallery_cameras": gallery_cameras}
    positives = count_positives(query_labels, gallery_labels, self_match=self_match, **cameras)
    seen = sightings(query_labels, gallery_labels, query_cameras, gallery_cameras, self_match=self_match)
    first = torch.empty_like(query_labels)
    with torch.no_grad():
        scores_of = score_blocks(query, gallery, score)
        rows = max(1, working_set(query_labels.device) // max(1, len(gallery_labels)))
        for start in range(0, len(query_labels), rows):
            stop = min(start + rows, len(query_labels))
            scores = scores_of(start, stop)
            refuse_nan(scores, first_row=start)
            if self_match:
                itself = torch.arange(start, stop, device=scores.device)
                scores.scatter_(1, itself[:, None], -torch.inf)
            if seen is not None:
                scores.masked_fill_(seen[0][start:stop, None] == seen[1], -torch.inf)
            first[start:stop] = scores.argmax(dim=1)  # of equal scores the first, as everywhere
    kept = positives > 0
    return share_of((gallery_labels[first] == query_labels)[kept])


def share_of(hits: Tensor) -> float:
    """Share of queries ``(Q,)`` bool that found what they should.

    Raises:
        ValueError: if there is no query.
    """
    if not len(hits):
        raise ValueError("no query has a positive in the gallery, so there is nothing to average")
    return int(hits.sum()) / len(hits)
