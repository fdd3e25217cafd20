"""Which gallery items are positives of a query: those of its label, the query itself left out.

In re-identification the items of the query's label that its own camera saw are *junk*: neither positive nor negative,
and without a rank. Source: Zhong et al., "Re-ranking Person Re-identification with k-reciprocal Encoding", the protocol
CUHK03-NP, which is that of Market-1501.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Positives:
    """The positives of every query, listed without a ``(Q, G)`` table.

    Attributes:
        by_label: ``(G,)`` gallery indices in ascending order of label, then of index.
        first: ``(Q,)`` position in ``by_label`` where the query's label begins.
        itself: ``(Q,)`` position of the query itself in ``by_label``, ``G`` where it is not in the gallery.
        counts: ``(Q,)`` number of positives.
    """

    by_label: Tensor
    first: Tensor
    itself: Tensor
    counts: Tensor

    def of(self, queries: Tensor) -> Tensor:
        """Gallery indices ``(B, P)`` of the positives of ``queries (B,)``, each of which must have one.

        P is their largest number of positives; shorter rows repeat their last positive.
        """
        counts = self.counts[queries, None]
        steps = torch.arange(int(counts.max()), device=counts.device).minimum(counts - 1)  # (B, P)
        positions = self.first[queries, None] + steps
        positions += positions >= self.itself[queries, None]
        return self.by_label[positions]


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
        return Positives(by_label, first, itself=by_label.argsort(), counts=counts - 1)
    return Positives(by_label, first, itself=torch.full_like(first, len(gallery_labels)), counts=counts)


def count_positives(
    query_labels: Tensor,
    gallery_labels: Tensor,
    *,
    self_match: bool,
    query_cameras: Tensor | None = None,
    gallery_cameras: Tensor | None = None,
) -> Tensor:
    """Number of positives ``(Q,)`` int64 of every query; where it is 0, retrieval metrics leave the query out.

    These are the ``class_sizes`` of ``retrieval_metrics_from_ranking``. With cameras junk does not count. Raises
    ``ValueError`` as ``find_positives`` and ``sightings``.
    """
    counts = find_positives(query_labels, gallery_labels, self_match=self_match).counts
    seen = sightings(query_labels, gallery_labels, query_cameras, gallery_cameras, self_match=self_match)
    return counts if seen is None else counts - find_positives(*seen, self_match=self_match).counts


def sightings(
    query_labels: Tensor,
    gallery_labels: Tensor,
    query_cameras: Tensor | None,
    gallery_cameras: Tensor | None,
    *,
    self_match: bool,
) -> tuple[Tensor, Tensor] | None:
    """A number for each pair of label and camera: gallery items with the query's number are its junk.

    Args:
        query_labels: ``(Q,)`` int64.
        gallery_labels: ``(G,)`` int64.
        query_cameras: ``(Q,)`` int64, or ``None`` where nothing is junk.
        gallery_cameras: ``(G,)`` int64, or ``None`` as well.
        self_match: query i is gallery item i.

    Returns:
        ``(Q,)`` and ``(G,)`` int64, or ``None`` without cameras.

    Raises:
        ValueError: if cameras are given on one side only, or as ``check_pair``.
    """
    if query_cameras is None and gallery_cameras is None:
        return None
    if query_cameras is None or gallery_cameras is None:
        absent = "query_cameras" if query_cameras is None else "gallery_cameras"
        raise ValueError(f"{absent} is missing: cameras must be given of queries and gallery, or of neither")
    check_pair("cameras", query_cameras, gallery_cameras, (len(query_labels), len(gallery_labels)), self_match)
    pairs = torch.stack([torch.cat([query_labels, gallery_labels]), torch.cat([query_cameras, gallery_cameras])], dim=1)
    numbers = torch.unique(pairs, dim=0, return_inverse=True)[1]
    return numbers[: len(query_labels)], numbers[len(query_labels) :]


def check_pair(name: str, query: Tensor, gallery: Tensor, sizes: tuple[int, int], self_match: bool) -> None:
    """Raise ``ValueError`` unless these are numbers of ``sizes = (Q, G)`` items, with ``self_match`` the same twice."""
    for side, numbers, size in zip(("queries", "gallery items"), (query, gallery), sizes, strict=True):
        if numbers.shape != (size,) or numbers.is_floating_point():
            raise ValueError(
                f"{name} of the {side} must be ({size},) int64, not {tuple(numbers.shape)} {numbers.dtype}"
            )
    if self_match and not torch.equal(query, gallery):
        raise ValueError(f"self_match=True needs query i to be gallery item i, but their {name} differ")
