"""DIML's training losses on the mean of structural and global measures, as functions and as modules.

The modules draw triplets and learn boundaries. Plans and marginals are constants unless ``plan_gradient=True`` is
passed on to `Matching`: gradients reach the network through the similarities and distances that the plans weigh.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), Eq. 10 to 12 and section 5; the
numbers are the released code's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lookalike.base.checks import require_known, require_range
from lookalike.base.tensors import beside, log_one_plus_sum_exp, unit
from lookalike.methods.diml.head import mean_vector
from lookalike.methods.diml.matching import Matching
from lookalike.methods.diml.similarity import location_distance, structural_similarity
from lookalike.sampling.miners import DistanceWeightedMiner

__all__ = ["DIMLLoss", "margin_loss", "multi_similarity_loss"]

SMOOTHING = 1e-6
"""Added to squared distances in the released code, so that equal vectors have a gradient."""


def margin_loss(
    regions: Tensor, triplets: Tensor, labels: Tensor, boundary: Tensor, *, margin: float = 0.2, **matching: Any
) -> Tensor:
    """Keep positives ``margin`` inside and negatives ``margin`` outside the boundary of the anchor's class.

    The distance is the mean of the structural and the global one, both Euclidean.

    Source: DIML, Eq. 10 and 11. Differs: the released code compares every distance with the boundary of every anchor;
    here each pair has its own, which is the same while boundaries are equal. Its margin is fixed, as here; the paper
    calls it learnable.

    Args:
        regions: ``(B, R, D)``, not normalised.
        triplets: ``(T, 3)`` int64 rows of anchor, positive, negative.
        labels: ``(B,)`` int64.
        boundary: ``(classes,)``, learnable.
        margin: half the width of the band to keep free.
        matching: options of `Matching`.

    Returns:
        Scalar: sum of the hinges over the number of triplets with a positive one; 0 without any.

    Raises:
        ValueError: if the shapes do not belong together, a triplet names no image or a label has no boundary.
    """
    check_batch(regions, labels)
    if triplets.ndim != 2 or triplets.shape[1] != 3:
        raise ValueError(f"triplets has shape {tuple(triplets.shape)}, it must be (T, 3)")
    if boundary.ndim != 1:
        raise ValueError(f"boundary has shape {tuple(boundary.shape)}, it must be (classes,)")
    require_range("triplets", triplets, len(regions))
    require_range("labels", labels, len(boundary))
    anchor, positive, negative = triplets.unbind(dim=1)
    distance = pair_distance(regions, anchor.repeat(2), torch.cat([positive, negative]), **matching)  # (2 T,)
    to_positive, to_negative = distance[: len(triplets)], distance[len(triplets) :]
    limit = boundary[labels[anchor]]  # (T,)
    too_far, too_near = (to_positive - limit + margin).relu(), (limit + margin - to_negative).relu()
    active = ((too_far > 0) | (too_near > 0)).sum()
    return (too_far + too_near).sum() / active.clamp(min=1)


def multi_similarity_loss(
    regions: Tensor,
    labels: Tensor,
    *,
    alpha: float = 2.0,
    beta: float = 40.0,
    base: float = 0.5,
    epsilon: float = 0.1,
    **matching: Any,
) -> Tensor:
    """Multi-Similarity loss on the mean of structural and global similarity.

    Negatives count that are more similar than the least similar positive less ``epsilon``, and positives that are less
    similar than the most similar negative plus ``epsilon``.

    Source: DIML, Eq. 11 and 12; Wang et al., "Multi-Similarity Loss with General Pair Weighting", 2019.

    Args:
        regions: ``(B, R, D)``, not normalised.
        labels: ``(B,)`` int64.
        alpha: scale of the positives.
        beta: scale of the negatives.
        base: similarity that both kinds are compared with.
        epsilon: slack of the choice of pairs.
        matching: options of `Matching`.

    Returns:
        Scalar: mean over the anchors that keep pairs, 0 without any.

    Raises:
        ValueError: if the shapes do not belong together.
    """
    check_batch(regions, labels)
    vectors, units = mean_vector(regions), unit(regions)  # (B, D), (B, R, D)
    structural = structural_similarity(units, vectors, units, vectors, **matching)  # (B, B)
    similarity = (structural + vectors @ vectors.T) / 2
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    weakest = similarity.masked_fill(~positive, torch.inf).amin(dim=1, keepdim=True)  # (B, 1)
    strongest = similarity.masked_fill(same, -torch.inf).amax(dim=1, keepdim=True)  # (B, 1)
    hard_positive = positive & (similarity - epsilon < strongest)
    hard_negative = ~same & (similarity + epsilon > weakest)
    pull = log_one_plus_sum_exp(-alpha * (similarity - base), hard_positive, dim=1) / alpha  # (B,)
    push = log_one_plus_sum_exp(beta * (similarity - base), hard_negative, dim=1) / beta  # (B,)
    # An anchor keeps pairs of both kinds or none: the extremes are kept together.
    return (pull + push).sum() / hard_positive.any(dim=1).sum().clamp(min=1)


def pair_distance(regions: Tensor, first: Tensor, second: Tensor, **matching: Any) -> Tensor:
    """Mean of structural and global Euclidean distance of some pairs.

    Args:
        regions: ``(B, R, D)``, not normalised.
        first: ``(T,)`` int64 images.
        second: ``(T,)`` int64.
        matching: options of `Matching`.

    Returns:
        ``(T,)`` in [0, 2].
    """
    vectors, units = mean_vector(regions), unit(regions)  # (B, D), (B, R, D)
    # Each pair is a query with one candidate of its own, (P, 1, R, D).
    match = Matching(**matching)(units[first], vectors[first], units[second].unsqueeze(1), vectors[second].unsqueeze(1))
    structural = (match.plan * location_distance(match.correlation, SMOOTHING)).sum(dim=(-2, -1)).squeeze(1)
    return (structural + ((vectors[first] - vectors[second]).square().sum(dim=1) + SMOOTHING).sqrt()) / 2


def check_batch(regions: Tensor, labels: Tensor) -> None:
    """Refuse labels that are not those of the regions.

    Raises:
        ValueError: naming the shapes.
    """
    if regions.ndim != 3 or labels.shape != regions.shape[:1] or not len(labels):
        raise ValueError(
            f"regions {tuple(regions.shape)} and labels {tuple(labels.shape)} must be (B, R, D) and (B,), B >= 1"
        )


class MarginTerm(nn.Module):
    """`margin_loss` with drawn triplets and a learned boundary per class.

    ``(d_ap - b + margin)+`` and ``(b + margin - d_an)+``: their sum over the number of triplets with a positive one.
    Triplets are drawn by the distances of the global vectors, with `DistanceWeightedMiner`.

    Source: DIML, Eq. 10 and 11, and section 5.

    Args:
        classes: number of training classes.
        margin: half the width of the band to keep free.
        boundary: initial value of all boundaries.
        triplets_per_anchor: triplets drawn for each anchor by `DistanceWeightedMiner`.
        generator: what triplets are drawn from; ``None`` is the global generator.
        matching: options of `Matching`.
    """

    def __init__(
        self,
        classes: int,
        *,
        margin: float = 0.2,
        boundary: float = 1.2,
        triplets_per_anchor: int = 1,
        generator: torch.Generator | None = None,
        **matching: Any,
    ) -> None:
        super().__init__()
        Matching(**matching)  # a wrong option is refused here
        self.margin, self.matching = margin, matching
        self.miner = DistanceWeightedMiner(triplets_per_anchor=triplets_per_anchor, generator=generator)
        self.boundaries = nn.Parameter(torch.full((classes,), float(boundary)))

    def forward(self, regions: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        # Drawing has no gradient; (T, 3).
        triplets = torch.stack(self.miner(mean_vector(regions.detach()), labels), dim=1)
        labels = beside(labels, regions)
        return margin_loss(regions, triplets, labels, self.boundaries, margin=self.margin, **self.matching)


class MultiSimilarityTerm(nn.Module):
    """`multi_similarity_loss` with its numbers, which are the arguments; the number of classes is not read.

    ``log(1 + sum_p exp(-alpha (s_ap - base))) / alpha + log(1 + sum_n exp(beta (s_an - base))) / beta`` over the
    positives with ``s_ap < max_n s_an + epsilon`` and the negatives with ``s_an > min_p s_ap - epsilon``, mean over
    anchors that keep pairs.

    Source: DIML, Eq. 11 and 12; Wang et al. 2019.
    """

    def __init__(
        self,
        classes: int,
        *,
        alpha: float = 2.0,
        beta: float = 40.0,
        base: float = 0.5,
        epsilon: float = 0.1,
        **matching: Any,
    ) -> None:
        super().__init__()
        Matching(**matching)
        self.options = {"alpha": alpha, "beta": beta, "base": base, "epsilon": epsilon, **matching}

    def forward(self, regions: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        return multi_similarity_loss(regions, beside(labels, regions), **self.options)


TERMS = {"margin": MarginTerm, "multi_similarity": MultiSimilarityTerm}


class DIMLLoss(nn.Module):
    """One of DIML's two training losses.

    Args:
        kind: ``margin`` or ``multi_similarity``.
        classes: number of training classes; labels lie below it.
        options: keyword arguments of `MarginTerm` or `MultiSimilarityTerm`.

    Raises:
        ValueError: if ``kind`` is unknown, ``classes`` is below 1, or an option of the matching has a wrong value.
        TypeError: if an option belongs to the other kind or to none.
    """

    def __init__(self, kind: str, classes: int, **options: Any) -> None:
        super().__init__()
        require_known("kind", kind, TERMS)
        if classes < 1:
            raise ValueError(f"classes={classes} must be at least 1")
        self.classes = classes
        self.term = TERMS[kind](classes, **options)

    def forward(self, regions: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch.

        Args:
            regions: ``(B, R, D)``, not normalised, as `DIML.regions` gives them; half precision is promoted
                to float32, under autocast too.
            labels: ``(B,)`` int64 in ``[0, classes)``.

        Returns:
            Scalar.

        Raises:
            ValueError: if the shapes do not belong together or a label is out of range.
        """
        check_batch(regions, labels)
        require_range("labels", labels, self.classes)
        # Plans are made of exp(cosine / reg) with a small reg: 16 bits would round them away.
        with torch.autocast(regions.device.type, enabled=False):
            precise = regions.to(torch.promote_types(regions.dtype, torch.float32))
            loss: Tensor = self.term(precise, labels)
            return loss
