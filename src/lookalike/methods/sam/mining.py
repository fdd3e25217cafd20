"""The mining loss: the rest of a tuple after erasing must not tell who belongs to whom (paper, Eq. 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from lookalike.base.checks import require_known
from lookalike.methods.sam.attention import Network, Score, attention_maps, require_roles
from lookalike.methods.sam.head import at_least_float32
from lookalike.methods.sam.masks import require_mask, soft_mask

BATCH_NORMS = ("frozen", "batch")
SMALLEST_SQUARE = 1e-12  # keeps the distance differentiable at 0
SMOOTHING = 1e-6
# of the distance of the positive minus that of the negative
FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "absolute": torch.abs,
    "squared": torch.abs,
    "smooth": lambda gap: (gap.square() + SMOOTHING).sqrt(),
    "hinge": lambda gap: F.relu(-gap),
    "reverse": torch.neg,
}


@dataclass(frozen=True)
class Erasing:
    """Settings of erasing: the reading of attention, and the masks that are made of it.

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
    """Erase from each image the places that make its tuple similar, and pass the rest through the network.

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
    # A mask is made of a gradient: to train through it takes second derivatives.
    differentiable = torch.is_grad_enabled() and not settings.detach_mask
    with frozen_batch_norm(head):  # maps depend on their tuple alone, and no image enters the statistics twice
        maps = settings.attention(feature_maps, head, kind, create_graph=differentiable)
    height, width = images.shape[-2:]
    masks = settings.masks(maps, (height, width))
    masked = (images * (1 - masks[:, :, None])).to(images.dtype)  # (R, B, 3, H, W)
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


def mining_loss(masked_features: Tensor, kind: str, *, form: str = "absolute") -> Tensor:
    """Loss on the evidence, left in masked images, of their belonging together.

    Args:
        masked_features: ``(R, B, D)`` unit features of the masked images.
        kind: ``triplet`` ``|d_ap - d_an|``; ``quadruplet`` the sum over both negatives; ``siamese_same`` and
            ``siamese_different`` ``-d_12``. Training applies the pair's to positive pairs only.
        form: what is made of the difference ``g = d_ap - d_an``. ``absolute`` ``|g|``; ``squared`` the same of squared
            distances, of which pairs take minus the square, too; ``smooth`` ``sqrt(g^2 + 1e-6)``; ``hinge``
            ``max(-g, 0)``, which does not pull back a triplet that is inverted; ``reverse`` ``-g``, which asks for
            inverted triplets. ``smooth``, ``hinge`` and ``reverse`` mean nothing for a pair and leave it as it is.

    Returns:
        ``(B,)``, at least float32.

    Raises:
        ValueError: for an unknown kind or form, or features that do not fit the kind.

    Source: Visual Similarity Attention, Eq. 2, which is printed without its operators.
    Differs: absolute value and minus sign are reconstructed from what the text says they achieve; the alternatives are
    for ablation. Distances are ``sqrt(sum of squares + 1e-12)``.
    """
    require_known("form", form, FORMS)
    require_roles("masked_features", masked_features, kind, "D")
    anchor, other, *negatives = masked_features.to(at_least_float32(masked_features)).unbind()
    measure = _squared_distance if form == "squared" else _distance
    near = measure(anchor, other)  # (B,)
    if not negatives:
        return -near
    return torch.stack([FORMS[form](near - measure(anchor, negative)) for negative in negatives]).sum(dim=0)


def similarity_mining(
    trunk: Network,
    head: Network,
    images: Tensor,
    kind: str,
    *,
    reading: str = "outer",
    alpha: float = 10.0,
    beta: float = 0.5,
    normalise: str = "minmax",
    detach_mask: bool = False,
    form: str = "absolute",
    **options: Any,
) -> Tensor:
    """Mining loss of tuples of images: attention, masks, and the network once more on the masked images.

    The mask is part of the graph: parameters, features and maps, attention, mask, masked image, features, loss. So the
    gradient is of second order through the attention.

    Args:
        trunk: ``(N, 3, H, W)`` to feature maps ``(N, C, h, w)``, roles and tuples in one batch.
        head: ``(N, C, h, w)`` to unit features ``(N, D)``.
        images: ``(R, B, 3, H, W)``, normalised.
        kind: kind of the tuples: ``siamese_same``, ``siamese_different``, ``triplet`` or ``quadruplet``.
        reading: what of the weight is differentiated, ``outer``, ``stop`` or ``full``, as in ``attention_maps``.
        alpha: slope of the soft mask.
        beta: threshold of the soft mask.
        normalise: how a map is brought to its range before the mask: ``minmax``, ``max`` or ``none``.
        detach_mask: whether the mask is a constant to the gradient.
        form: measure of a triplet's distances, see ``mining_loss``.
        options: the other settings of ``Erasing``.

    Returns:
        ``(B,)``, one value per tuple.

    Raises:
        ValueError: for a setting with a wrong value, or shapes that do not belong together.
        TypeError: for an option that ``Erasing`` does not have.

    Source: Visual Similarity Attention, Eq. 1 and 2.
    """
    settings = Erasing(reading, alpha=alpha, beta=beta, normalise=normalise, detach_mask=detach_mask, **options)
    return mine(trunk, head, images, kind, settings, form=form)


def mine(trunk: Network, head: Network, images: Tensor, kind: str, settings: Erasing, *, form: str) -> Tensor:
    """``similarity_mining`` with settings that are made and checked already."""
    require_known("form", form, FORMS)
    require_roles("images", images, kind, "3, H, W")
    erased = erase(trunk, head, images, read_maps(trunk, images), kind, settings)
    return mining_loss(erased.features, kind, form=form)


def _squared_distance(first: Tensor, second: Tensor) -> Tensor:
    return (first - second).square().sum(dim=-1)


def _distance(first: Tensor, second: Tensor) -> Tensor:
    return (_squared_distance(first, second) + SMALLEST_SQUARE).sqrt()
