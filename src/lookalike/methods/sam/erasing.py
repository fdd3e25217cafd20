"""Images with the places erased that made them similar, and what the network still sees in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lookalike.checks import require_known
from lookalike.methods.sam.attention import attention_maps
from lookalike.methods.sam.masks import require_mask, soft_mask
from lookalike.methods.sam.weights import Network, Score, require_roles

BATCH_NORMS = ("frozen", "batch")


@dataclass(frozen=True)
class Erasing:
    """How attention is read and turned into masks.

    Attributes:
        reading: option of ``attention_maps``, as are ``score``, ``score_on`` and ``clamp``.
        alpha: option of ``soft_mask``, as are ``beta`` and ``normalise``.
        detach_mask: whether the mask is a constant for the training (first order mining; the paper's is not).
        masked_batch_norm: statistics on masked images: ``frozen``, or those of the masked ``batch`` as the modules' own
            modes say, which then enter the running ones.

    Raises:
        ValueError: for an unknown option or an ``alpha`` that is not positive and finite.
    """

    reading: str = "outer"
    score: str = "signed"
    score_on: str = "unit"
    clamp: bool = False
    alpha: float = 10.0
    beta: float = 0.5
    normalise: str = "minmax"
    detach_mask: bool = False
    masked_batch_norm: str = "frozen"

    def __post_init__(self) -> None:
        Score("triplet", self.reading, self.score, self.score_on)
        require_mask(self.alpha, self.normalise)
        require_known("masked_batch_norm", self.masked_batch_norm, BATCH_NORMS)

    def attention(self, feature_maps: Tensor, head: Network, kind: str, *, create_graph: bool = False) -> Tensor:
        """``attention_maps`` as read by these settings."""
        return attention_maps(
            feature_maps,
            head,
            kind,
            reading=self.reading,
            create_graph=create_graph,
            score=self.score,
            score_on=self.score_on,
            clamp=self.clamp,
        )

    def masks(self, maps: Tensor, size: tuple[int, int]) -> Tensor:
        """``soft_mask`` as these settings make it."""
        return soft_mask(maps, size, alpha=self.alpha, beta=self.beta, normalise=self.normalise)


@dataclass(frozen=True)
class Erased:
    """Tuples after erasing.

    Attributes:
        maps: ``(R, B, h, w)`` attention, at the size of the feature maps.
        masks: ``(R, B, H, W)`` in (0, 1), 1 where a pixel is gone.
        features: ``(R, B, D)`` unit features of the masked images.
    """

    maps: Tensor
    masks: Tensor
    features: Tensor


def read_maps(trunk: Network, images: Tensor) -> Tensor:
    """Feature maps ``(R, B, C, h, w)`` of images ``(R, B, 3, H, W)``.

    Raises:
        ValueError: if the trunk does not give one map per image.
    """
    feature_maps = trunk(images.flatten(0, 1))
    if not isinstance(feature_maps, Tensor):
        kind = type(feature_maps).__name__
        raise ValueError(f"trunk returned a {kind}, one tensor of maps is needed (LastMap takes the last of a list)")
    if feature_maps.ndim != 4 or len(feature_maps) != images.shape[0] * images.shape[1]:
        count = images.shape[0] * images.shape[1]
        raise ValueError(f"trunk returned shape {tuple(feature_maps.shape)}, it must be ({count}, C, h, w)")
    return feature_maps.view(*images.shape[:2], *feature_maps.shape[1:])


def erase(trunk: Network, head: Network, images: Tensor, feature_maps: Tensor, kind: str, settings: Erasing) -> Erased:
    """Erase from each image what makes its tuple similar, and pass what is left through the network.

    Args:
        trunk: ``(N, 3, H, W)`` to ``(N, C, h, w)``.
        head: ``(N, C, h, w)`` to unit features ``(N, D)``.
        images: ``(R, B, 3, H, W)``, normalised; an erased pixel becomes 0, the mean colour.
        feature_maps: ``(R, B, C, h, w)``, the trunk's of these images.
        kind: kind of the tuples.
        settings: how.

    Returns:
        Maps, masks and features; on the graph of the feature maps unless masks are detached or gradients are off.

    Raises:
        ValueError: for an unknown kind, or shapes that do not belong together.
    """
    require_roles("images", images, kind, "3, H, W")
    differentiable = torch.is_grad_enabled() and not settings.detach_mask
    with frozen_batch_norm(head):  # maps depend on their tuple alone, and no image enters the statistics twice
        maps = settings.attention(feature_maps, head, kind, create_graph=differentiable)
    height, width = images.shape[-2:]
    masks = settings.masks(maps, (height, width))
    masked = (images * (1 - masks[:, :, None])).to(images.dtype)
    with frozen_batch_norm(trunk, head) if settings.masked_batch_norm == "frozen" else nullcontext():
        features: Tensor = head(read_maps(trunk, masked).flatten(0, 1))
    return Erased(maps, masks, features.view(*images.shape[:2], features.shape[1]))


@contextmanager
def frozen_batch_norm(*networks: Network) -> Iterator[None]:
    """Inside, batch norms use and keep their running statistics; scale and shift are trained as before.

    Masked images are none of the training set's: their statistics must not enter the model.
    """
    modules = [module for network in networks if isinstance(network, nn.Module) for module in network.modules()]
    training = [module for module in modules if isinstance(module, _BatchNorm) and module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
