"""The mining loss: what is left of a tuple after erasing must not tell who belongs to whom (paper, Eq. 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.checks import require_known
from lookalike.methods.sam.erasing import Erasing, erase, read_maps
from lookalike.methods.sam.head import at_least_float32
from lookalike.methods.sam.weights import Network, require_roles

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


def mining_loss(masked_features: Tensor, kind: str, *, form: str = "absolute") -> Tensor:
    """How far masked images still show which of them belong together.

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
    near = measure(anchor, other)
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
