"""Trainable parts of AVSL's losses: proxies and boundaries, and which distances they apply to.

A term is one distance matrix of the objective: 0 is the overall distance, 1 to L are the levels, lowest first.

Source: Attributable Visual Similarity Learning (CVPR 2022); the numbers are the released code's.
"""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.methods.avsl.criteria import Average, margin_loss, proxy_anchor_loss
from lookalike.methods.avsl.representation import Representation
from lookalike.sampling.miners.triplets import distance_weighted_triplets, hardest_triplets

Sampling = Literal["hardest", "distance_weighted"]


class ProxyAnchorTerms(nn.Module):
    """Proxy Anchor against learned proxies, one table of them per level.

    Args:
        classes: number of training classes.
        levels: number of levels.
        embedding_dim: r.
        scale: sharpness of the loss, see `proxy_anchor_loss`.
        positive_margin: margin of positives on all distances.
        negative_margin: margin of negatives on all distances, unless the next one is given.
        level_negative_margin: margin of negatives on the distances of single levels (2.4 in the released SOP setting).
        all_proxies_up_to: number of classes beyond which only those present in the batch are compared with.
        generator: draws the initial proxies.
    """

    def __init__(
        self,
        classes: int,
        levels: int,
        embedding_dim: int,
        *,
        scale: float = 16.0,
        positive_margin: float = 1.8,
        negative_margin: float = 2.2,
        level_negative_margin: float | None = None,
        all_proxies_up_to: int = 1000,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.scale, self.positive_margin = scale, positive_margin
        level_margin = negative_margin if level_negative_margin is None else level_negative_margin
        self.negative_margins = [negative_margin, *[level_margin] * levels]
        self.all_proxies = classes <= all_proxies_up_to
        self.proxies = nn.ParameterList(torch.empty(classes, embedding_dim) for _ in range(levels))
        for table in self.proxies:
            nn.init.kaiming_normal_(table, a=sqrt(5), generator=generator)

    def reference(self, representation: Representation, labels: Tensor) -> tuple[Representation, Tensor]:
        """Proxies as second items of the pairs, and their classes.

        A proxy has no map; its statistic is the mean of the batch's over images and nodes (the paper is silent).
        """
        present = torch.arange(len(self.proxies[0]), device=labels.device) if self.all_proxies else torch.unique(labels)
        embeddings = tuple(table[present] for table in self.proxies)
        statistics = tuple(
            statistic.mean().expand_as(table)
            for statistic, table in zip(representation.statistics, embeddings, strict=True)
        )
        return Representation(embeddings, statistics), present

    def forward(
        self,
        term: int,
        distance: Tensor,
        labels: Tensor,
        reference_labels: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Loss of one distance matrix; ``generator`` is not read."""
        return proxy_anchor_loss(
            distance,
            labels,
            reference_labels,
            scale=self.scale,
            positive_margin=self.positive_margin,
            negative_margin=self.negative_margins[term],
        )


class MarginTerms(nn.Module):
    """Margin loss among the images of the batch, with a learned boundary per class for each distance.

    Differs: as in the released code the distances are squared and the negatives are the hardest; the paper is
    Euclidean and cites distance-weighted sampling (``sampling="distance_weighted"``).

    Args:
        classes: number of training classes.
        levels: number of levels.
        embedding_dim: r, read by distance-weighted sampling.
        margin: half the width of the band to keep free.
        boundary: initial value of all boundaries.
        average: ``pooled`` or ``separate``, see `margin_loss`.
        sampling: ``hardest`` or ``distance_weighted``.
        cutoff: distance below which the sampling does not tell negatives apart.
    """

    def __init__(
        self,
        classes: int,
        levels: int,
        embedding_dim: int,
        *,
        margin: float = 0.2,
        boundary: float = 1.2,
        average: Average = "pooled",
        sampling: Sampling = "hardest",
        cutoff: float = 0.5,
    ) -> None:
        super().__init__()
        known = {
            "hardest": partial(hardest_triplets, cutoff=cutoff),
            "distance_weighted": partial(distance_weighted_triplets, dim=embedding_dim, cutoff=cutoff),
        }
        require_known("sampling", sampling, known)
        self.margin, self.average = margin, average
        self.triplets = known[sampling]
        self.boundaries = nn.ParameterList(torch.full((classes,), boundary) for _ in range(levels + 1))

    def reference(self, representation: Representation, labels: Tensor) -> tuple[Representation, Tensor]:
        """The batch itself."""
        return representation, labels

    def forward(
        self,
        term: int,
        distance: Tensor,
        labels: Tensor,
        reference_labels: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Loss of one distance matrix, with triplets of its own."""
        triplets = self.triplets(distance, labels, generator=generator)
        return margin_loss(distance, triplets, labels, self.boundaries[term], margin=self.margin, average=self.average)
