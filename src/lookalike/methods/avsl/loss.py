"""AVSL's objective: one loss on the overall distance, one on the distance of every level.

A term is one distance matrix of the objective: 0 is the overall distance, 1 to L are the levels, lowest first.
Gradients of the first reach the graph's alpha and beta only, those of the others heads, backbone and the loss's own
parameters, so that one backward pass serves the paper's two minimisations.

Source: Attributable Visual Similarity Learning (CVPR 2022); the numbers are the released code's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from lookalike.base.checks import require_known, require_range
from lookalike.base.tensors import beside, log_one_plus_sum_exp
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.similarity import level_distance
from lookalike.sampling.miners.triplets import distance_weighted_triplets, hardest_triplets

__all__ = ["AVSLLoss", "hardest_triplets", "margin_loss", "proxy_anchor_loss"]

Average = Literal["pooled", "separate"]
Sampling = Literal["hardest", "distance_weighted"]


def proxy_anchor_loss(
    distance: Tensor,
    labels: Tensor,
    proxy_labels: Tensor,
    *,
    scale: float = 16.0,
    positive_margin: float = 1.8,
    negative_margin: float = 2.2,
) -> Tensor:
    """Pull images towards the proxies of their class and push them from the others.

    Source: AVSL's distance form of Proxy Anchor. Differs: the scale is the 16 of the published command lines, not the
    32 of the released configuration file.

    Args:
        distance: ``(N, P)`` of images to proxies.
        labels: ``(N,)`` int64.
        proxy_labels: ``(P,)`` int64.
        scale: factor of the exponents.
        positive_margin: distance below which a positive counts little.
        negative_margin: distance above which a negative counts little.

    Returns:
        Scalar: mean over the proxies with a positive in the batch (0 without any), plus mean over all proxies.

    Raises:
        ValueError: if the shapes do not belong together or there is no proxy.
    """
    if distance.ndim != 2 or distance.shape[1] == 0:
        raise ValueError(f"distance has shape {tuple(distance.shape)}, it must be (N, P) with P >= 1")
    if labels.shape != distance.shape[:1] or proxy_labels.shape != distance.shape[1:]:
        raise ValueError(
            f"labels {tuple(labels.shape)} and proxy_labels {tuple(proxy_labels.shape)} must be "
            f"({distance.shape[0]},) and ({distance.shape[1]},), the sides of distance"
        )
    positive = labels[:, None] == proxy_labels  # (N, P)
    pull = log_one_plus_sum_exp(scale * (distance - positive_margin), positive, dim=0)  # (P,)
    push = log_one_plus_sum_exp(scale * (negative_margin - distance), ~positive, dim=0)  # (P,)
    # Only proxies with an image of their class in the batch can pull; all of them push.
    return pull.sum() / positive.any(dim=0).sum().clamp(min=1) + push.mean()


def margin_loss(
    distance: Tensor,
    triplets: Tensor,
    labels: Tensor,
    boundary: Tensor,
    *,
    margin: float = 0.2,
    average: Average = "pooled",
) -> Tensor:
    """Keep positives ``margin`` inside and negatives ``margin`` outside the boundary of the anchor's class.

    Source: AVSL's margin loss (its text has boundary 1.2 and margin 0.2 swapped). Differs: as in the released code the
    hinges of positives and negatives are pooled and averaged over those above 0; ``average="separate"`` is the paper:
    the mean over all positives plus the mean over all negatives. Without any hinge above 0 the loss is 0, where the
    released code divides by zero.

    Args:
        distance: ``(N, N)``, squared Euclidean in AVSL.
        triplets: ``(T, 3)`` int64 rows of anchor, positive, negative.
        labels: ``(N,)`` int64.
        boundary: ``(classes,)``, learnable.
        margin: half the width of the band to keep free.
        average: ``pooled`` or ``separate``.

    Returns:
        Scalar, 0 without triplets.

    Raises:
        ValueError: if the shapes do not belong together, a triplet names no image, a label has no boundary, or
            ``average`` is unknown.
    """
    require_known("average", average, get_args(Average))
    count = len(labels)
    if labels.ndim != 1 or distance.shape != (count, count):
        raise ValueError(f"distance has shape {tuple(distance.shape)}, it must be ({count}, {count}) as labels")
    if triplets.ndim != 2 or triplets.shape[1] != 3:
        raise ValueError(f"triplets has shape {tuple(triplets.shape)}, it must be (T, 3)")
    if boundary.ndim != 1:
        raise ValueError(f"boundary has shape {tuple(boundary.shape)}, it must be (classes,)")
    require_range("triplets", triplets, count)
    require_range("labels", labels, len(boundary))
    anchor, positive, negative = triplets.unbind(dim=1)
    limit = boundary[labels[anchor]]  # (T,)
    pull = (distance[anchor, positive] - limit + margin).relu()
    push = (limit + margin - distance[anchor, negative]).relu()
    if average == "separate":
        return (pull.sum() + push.sum()) / max(len(triplets), 1)
    hinges = torch.cat([pull, push])  # (2 T,), averaged over those that are violated
    return hinges.sum() / (hinges > 0).sum().clamp(min=1)


class ProxyAnchorTerms(nn.Module):
    """Proxy Anchor against learned proxies, one table of them per level.

    ``mean_{c in batch} log(1 + sum_{x of c} exp(scale (d_xc - positive_margin))) + mean_c log(1 + sum_{x not of c}
    exp(scale (negative_margin - d_xc)))`` on each distance d.

    Source: AVSL's distance form of Kim et al. 2020, Eq. 4.

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
        present = torch.arange(len(self.proxies[0])) if self.all_proxies else torch.unique(labels)
        present = beside(present, representation.embeddings[0])
        embeddings = tuple(table[present] for table in self.proxies)  # per level (P', r)
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
            beside(labels, distance),
            reference_labels,
            scale=self.scale,
            positive_margin=self.positive_margin,
            negative_margin=self.negative_margins[term],
        )


class MarginTerms(nn.Module):
    """Margin loss among the images of the batch, with a learned boundary per class for each distance.

    ``(d_ap - b + margin)+`` and ``(b + margin - d_an)+``, averaged over the strictly positive ones.

    Source: AVSL's margin loss; Wu et al. 2017.
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
        labels = beside(labels, distance)
        return margin_loss(distance, triplets, labels, self.boundaries[term], margin=self.margin, average=self.average)


TERMS = {"proxy_anchor": ProxyAnchorTerms, "margin": MarginTerms}


class AVSLLoss(nn.Module):
    """Weighted sum of one loss on the overall distance and one on the distance of every level.

    Differs: the paper weighs all alike (the default); the released settings of Proxy Anchor use (0.5, 1, 0.5) on CUB
    and (1, 4, 4) on Cars and SOP. In the released margin loss the weights are off by one: the first meets the overall
    distance, the others levels 1 and 2, and level 3 has weight 1. Here they mean what they say.

    Args:
        kind: ``proxy_anchor`` or ``margin``.
        classes: number of training classes; labels lie below it.
        embedding_dim: r.
        level_weights: one per level, lowest first.
        final_weight: weight of the loss on the overall distance.
        options: keyword arguments of `ProxyAnchorTerms` or `MarginTerms`.

    Raises:
        ValueError: if ``kind`` is unknown, or ``classes`` or the number of levels is below 1.
        TypeError: if an option belongs to the other kind or to none.
    """

    def __init__(
        self,
        kind: str,
        classes: int,
        *,
        embedding_dim: int = 512,
        level_weights: Sequence[float] = (1.0, 1.0, 1.0),
        final_weight: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__()
        require_known("kind", kind, TERMS)
        if classes < 1 or not level_weights:
            raise ValueError(f"classes={classes} and {len(level_weights)} level_weights must be at least 1")
        self.classes, self.weights = classes, (final_weight, *level_weights)
        self.terms = TERMS[kind](classes, len(level_weights), embedding_dim, **options)

    def forward(
        self,
        representation: Representation,
        labels: Tensor,
        distance: Callable[[Representation, Representation], Tensor],
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Loss of one batch.

        Args:
            representation: what the model makes of the N images, with gradients.
            labels: ``(N,)`` int64 in ``[0, classes)``; best on the host, where it waits for nothing.
            distance: overall distance of two representations, such as `AVSL.distance`.
            generator: draws the triplets of the margin loss.

        Returns:
            Scalar.

        Raises:
            ValueError: if labels or levels do not fit.
        """
        if labels.shape != (len(representation),):
            raise ValueError(f"labels has shape {tuple(labels.shape)}, it must be ({len(representation)},)")
        require_range("labels", labels, self.classes)
        if len(representation.embeddings) != len(self.weights) - 1:
            raise ValueError(
                f"the representation has {len(representation.embeddings)} levels, "
                f"level_weights {len(self.weights) - 1} entries"
            )
        reference, reference_labels = self.terms.reference(representation, labels)
        levels = zip(representation.embeddings, reference.embeddings, strict=True)
        # Term 0 trains alpha and beta, as `distance` takes embeddings as constants; the others train the rest.
        distances = [distance(representation, reference), *(level_distance(*level) for level in levels)]
        losses = [self.terms(term, each, labels, reference_labels, generator) for term, each in enumerate(distances)]
        return torch.stack([weight * loss for weight, loss in zip(self.weights, losses, strict=True)]).sum()
