"""Which gallery items are positives of a query: those of its label, the query itself left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Positives:
    """The positives of every query, listed without a ``(Q, G)`` table.

    Attributes:
        by_label: ``(G,)`` gallery indices in ascending order of label, then of index.
        first: ``(Q,)`` place in ``by_label`` where the query's label begins.
        own: ``(Q,)`` place of the query itself in ``by_label``, ``G`` where it is not in the gallery.
        counts: ``(Q,)`` number of positives.
    """

    by_label: Tensor
    first: Tensor
    own: Tensor
    counts: Tensor

    def of(self, queries: Tensor) -> Tensor:
        """Gallery indices ``(B, P)`` of the positives of ``queries (B,)``, each of which must have one.

        P is their largest number of positives; shorter rows repeat their last positive.
        """
        counts = self.counts[queries, None]
        steps = torch.arange(int(counts.max()), device=counts.device).minimum(counts - 1)  # (B, P)
        places = self.first[queries, None] + steps
        places += places >= self.own[queries, None]
        return self.by_label[places]


def find_positives(query_labels: Tensor, gallery_labels: Tensor, *, self_match: bool) -> Positives:
    """The positives of every query.

    Args:
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        self_match: query i is gallery item i, and no positive of itself.

    Raises:
        ValueError: if labels are not vectors of integers, or differ although ``self_match`` says they are the same.
    """
    for name, labels in (("query_labels", query_labels), ("gallery_labels", gallery_labels)):
        if labels.ndim != 1 or labels.is_floating_point():
            raise ValueError(f"{name} must be a vector of int64, not {tuple(labels.shape)} {labels.dtype}")
    if self_match and not torch.equal(query_labels, gallery_labels):
        raise ValueError(
            "self_match=True needs query i to be gallery item i, but query_labels and gallery_labels differ "
            f"({len(query_labels)} and {len(gallery_labels)} labels)"
        )
    sorted_labels, by_label = gallery_labels.sort(stable=True)
    first = torch.searchsorted(sorted_labels, query_labels)
    counts = torch.searchsorted(sorted_labels, query_labels, right=True) - first
    if self_match:
        return Positives(by_label, first, own=by_label.argsort(), counts=counts - 1)
    return Positives(by_label, first, own=torch.full_like(first, len(gallery_labels)), counts=counts)


def count_positives(query_labels: Tensor, gallery_labels: Tensor, *, self_match: bool) -> Tensor:
    """Number of positives ``(Q,)`` int64 of every query; where it is 0, retrieval metrics leave the query out.

    These are the ``class_sizes`` of ``retrieval_metrics_from_ranking``. Raises ``ValueError`` as ``find_positives``.
    """
    return find_positives(query_labels, gallery_labels, self_match=self_match).counts
