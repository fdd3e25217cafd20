"""Similarity attention as one object: maps, mining loss and explanations of tuples of images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lookalike.methods.sam.attention import ROLES, require_roles, similarity_weight
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.mining import Erased, Erasing, erase, mine, read_maps


@dataclass(frozen=True)
class Explanation:
    """Attention in the images of B tuples to the similarity, or the difference, that the kind asks for.

    Attributes:
        maps: ``(R, B, H, W)`` in [0, 1], at the size of the images, each brought to that range by itself.
        weight: ``(B, D)``, what each embedding dimension counts.
        features: ``(R, B, D)`` unit features.
    """

    maps: Tensor
    weight: Tensor
    features: Tensor


class SimilarityAttention(nn.Module):
    """A network that can say where the images of a tuple are similar, and learn by having these places erased.

    Explain in evaluation mode: a batch norm in training mode mixes the images.

    Args:
        trunk: images ``(N, 3, H, W)`` to feature maps ``(N, C, h, w)`` after a ReLU.
        head: feature maps to unit features ``(N, D)``; a ``LinearHead`` is fastest. Both parts of an ordinary embedding
            model come from ``head.trunk_and_head``.
        reading: what of the weight is differentiated, ``outer``, ``stop`` or ``full``, as in ``attention_maps``.
        score: ``signed``, or ``abs`` for the absolute value of each image's score.
        score_on: whether ``unit`` or ``raw`` features are scored.
        clamp: whether a weight below 0 counts as 0.
        alpha: slope of the soft mask.
        beta: threshold of the soft mask.
        normalise: how a map is brought to its range before the mask: ``minmax``, ``max`` or ``none``.
        detach_mask: whether the mask is a constant to the gradient.
        masked_batch_norm: statistics that batch norm takes for masked images: ``frozen`` or those of the ``batch``.

    Raises:
        ValueError: for an unknown option.

    Source: Visual Similarity Attention (IJCAI 2022).
    """

    def __init__(
        self,
        trunk: nn.Module,
        head: nn.Module,
        reading: str = "outer",
        *,
        score: str = "signed",
        score_on: str = "unit",
        clamp: bool = False,
        alpha: float = 10.0,
        beta: float = 0.5,
        normalise: str = "minmax",
        detach_mask: bool = False,
        masked_batch_norm: str = "frozen",
    ) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head
        self.settings = Erasing(
            reading=reading,
            score=score,
            score_on=score_on,
            clamp=clamp,
            alpha=alpha,
            beta=beta,
            normalise=normalise,
            detach_mask=detach_mask,
            masked_batch_norm=masked_batch_norm,
        )

    def forward(self, images: Tensor) -> Tensor:
        """Unit features ``(N, D)`` of images ``(N, 3, H, W)``."""
        features: Tensor = self.head(self.trunk(images))
        return features

    def maps(self, images: Tensor, kind: str) -> Tensor:
        """Attention ``(R, B, h, w)`` of tuples ``(R, B, 3, H, W)``, at the size of the feature maps; a constant.

        Raises:
            ValueError: for an unknown kind, or images that do not fit it.
        """
        require_roles("images", images, kind, "3, H, W")
        with torch.no_grad():
            return self.settings.attention(read_maps(self.trunk, images), self.head, kind)

    def erase(self, images: Tensor, feature_maps: Tensor, kind: str) -> Erased:
        """Maps, masks and features of masked tuples ``(R, B, 3, H, W)`` whose feature maps are known; see ``erase``."""
        return erase(self.trunk, self.head, images, feature_maps, kind, self.settings)

    def mining_loss(self, images: Tensor, kind: str, *, form: str = "absolute") -> Tensor:
        """``similarity_mining`` of tuples ``(R, B, 3, H, W)``, ``(B,)``.

        Raises:
            ValueError: for an unknown kind or form, or images that do not fit the kind.
        """
        return mine(self.trunk, self.head, images, kind, self.settings, form=form)

    @torch.no_grad()
    def explain(self, images: Tensor) -> dict[str, Explanation]:
        """Explanations of tuples by every kind that has as many roles.

        Args:
            images: ``(R, B, 3, H, W)``, R = 2, 3 or 4.

        Returns:
            For pairs ``siamese_same`` (what makes them similar) and ``siamese_different`` (what sets them apart), for
            three roles ``triplet``, for four ``quadruplet``.

        Raises:
            ValueError: for another number of roles.
        """
        kinds = [kind for kind, roles in ROLES.items() if images.ndim == 5 and len(images) == roles]
        if not kinds:
            raise ValueError(f"images have shape {tuple(images.shape)}, (R, B, 3, H, W) with R = 2, 3 or 4 is needed")
        feature_maps = read_maps(self.trunk, images)
        features: Tensor = self.head(feature_maps.flatten(0, 1))
        features = features.view(*images.shape[:2], features.shape[1])  # (R, B, D)
        height, width = images.shape[-2:]
        return {
            kind: Explanation(
                heat_map(self.settings.attention(feature_maps, self.head, kind), (height, width)),
                similarity_weight(features, kind, clamp=self.settings.clamp),
                features,
            )
            for kind in kinds
        }
