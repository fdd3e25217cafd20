"""AVSL's objective: one loss on the overall distance, one on the distance of every level.

Gradients of the first reach the graph's alpha and beta only, those of the others heads, backbone and the loss's own
parameters, so that one backward pass serves the paper's two minimisations.

Source: Attributable Visual Similarity Learning (CVPR 2022); the numbers are the released code's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.checks import require_known, require_range
from lookalike.methods.avsl.criteria import margin_loss, proxy_anchor_loss
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.similarity import level_distance
from lookalike.methods.avsl.terms import MarginTerms, ProxyAnchorTerms
from lookalike.sampling.miners.triplets import hardest_triplets

__all__ = ["AVSLLoss", "hardest_triplets", "margin_loss", "proxy_anchor_loss"]

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
            labels: ``(N,)`` int64 in ``[0, classes)``.
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
        distances = [distance(representation, reference), *(level_distance(*level) for level in levels)]
        losses = [self.terms(term, each, labels, reference_labels, generator) for term, each in enumerate(distances)]
        return torch.stack([weight * loss for weight, loss in zip(self.weights, losses, strict=True)]).sum()
