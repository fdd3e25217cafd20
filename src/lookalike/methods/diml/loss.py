"""DIML's training losses as modules, with drawn triplets and learned boundaries.

Plans and marginals are constants unless ``plan_gradient=True`` is passed on to `Matching`: gradients reach the network
through the similarities and distances that the plans weigh.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021), section 5; the numbers are the
released code's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lookalike.checks import require_known, require_range
from lookalike.methods.diml.criteria import check_batch, margin_loss, multi_similarity_loss
from lookalike.methods.diml.head import mean_vector
from lookalike.methods.diml.matching import Matching
from lookalike.sampling.miners import DistanceWeightedMiner

__all__ = ["DIMLLoss", "margin_loss", "multi_similarity_loss"]


class MarginTerm(nn.Module):
    """`margin_loss` with drawn triplets and a learned boundary per class.

    Source: DIML, section 5: triplets are drawn by the distances of the global vectors, with `DistanceWeightedMiner`.

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
        triplets = torch.stack(self.miner(mean_vector(regions.detach()), labels), dim=1)
        return margin_loss(regions, triplets, labels, self.boundaries, margin=self.margin, **self.matching)


class MultiSimilarityTerm(nn.Module):
    """`multi_similarity_loss` with its numbers, which are the arguments; the number of classes is not read."""

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
        return multi_similarity_loss(regions, labels, **self.options)


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
        with torch.autocast(regions.device.type, enabled=False):
            precise = regions.to(torch.promote_types(regions.dtype, torch.float32))
            loss: Tensor = self.term(precise, labels.to(regions.device))
            return loss
