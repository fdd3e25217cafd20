"""Similarity mining: what is left of a tuple after erasing must not tell who belongs to whom (paper, Eq. 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.losses.batch import BatchLoss
from lookalike.methods.sam.erasing import Erased, Erasing, erase, read_maps
from lookalike.methods.sam.head import at_least_float32
from lookalike.methods.sam.tuples import TRAINED_KINDS, mined_tuples
from lookalike.methods.sam.weights import Network, require_known, require_roles

if TYPE_CHECKING:
    from lookalike.methods.sam.model import SimilarityAttention

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
        form: of the difference ``g = d_ap - d_an``. ``absolute`` ``|g|``; ``squared`` the same of squared distances, of
            which pairs take minus the square, too; ``smooth`` ``sqrt(g^2 + 1e-6)``; ``hinge`` ``max(-g, 0)``, which
            does not pull back a triplet that is inverted; ``reverse`` ``-g``, which asks for inverted triplets.
            ``smooth``, ``hinge`` and ``reverse`` mean nothing for a pair and leave it as it is.

    Returns:
        ``(B,)``, at least float32.

    Raises:
        ValueError: for an unknown kind or form, or features that do not fit the kind.

    Source: Visual Similarity Attention, Eq. 2, which is printed without its operators.
    Differs: absolute value and minus sign are reconstructed from what the text says they achieve; the alternatives are
    for ablation. Distances are ``sqrt(sum of squares + 1e-12)``.
    """
    require_known("form", form, tuple(FORMS))
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
    score: str = "signed",
    score_on: str = "unit",
    clamp: bool = False,
    masked_batch_norm: str = "frozen",
) -> Tensor:
    """Mining loss of tuples of images: attention, masks, and the network once more on the masked images.

    The mask is part of the graph: parameters, features and maps, attention, mask, masked image, features, loss. So the
    gradient is of second order through the attention.

    Args:
        trunk: ``(N, 3, H, W)`` to feature maps ``(N, C, h, w)``, roles and tuples in one batch.
        head: ``(N, C, h, w)`` to unit features ``(N, D)``.
        images: ``(R, B, 3, H, W)``, normalised.
        kind: as in ``attention_maps``.
        reading: see ``attention_maps``; so are ``score``, ``score_on`` and ``clamp``.
        alpha: see ``soft_mask``; so are ``beta`` and ``normalise``.
        beta: see there.
        normalise: see there.
        detach_mask: see ``Erasing``; so is ``masked_batch_norm``.
        form: see ``mining_loss``.
        score: see there.
        score_on: see there.
        clamp: see there.
        masked_batch_norm: see there.

    Returns:
        ``(B,)``, one value per tuple.

    Raises:
        ValueError: for an unknown option, or shapes that do not belong together.

    Source: Visual Similarity Attention, Eq. 1 and 2.
    """
    settings = Erasing(
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
    require_known("form", form, tuple(FORMS))
    require_roles("images", images, kind, "3, H, W")
    erased = erase(trunk, head, images, read_maps(trunk, images), kind, settings)
    return mining_loss(erased.features, kind, form=form)


class SimilarityMiningLoss(nn.Module):
    """A metric loss plus ``gamma`` times the mining loss of the tuples that it mined.

    The metric loss sees every image of the batch once; the mining reads its feature maps and passes the masked images
    of at most ``N / images_per_tuple`` tuples through the network again.

    Args:
        metric_loss: a loss of ``lookalike.losses``; its miner, or all tuples of the batch if it has none, gives the
            tuples.
        kind: ``siamese_same``, ``triplet`` or ``quadruplet``.
        gamma: weight of the mining loss, 0 or more.
        form: see ``mining_loss``.
        warm_up_epochs: epochs without mining at the start, whose maps are noise.
        images_per_tuple: images of the batch for each tuple that is mined, at least 1.
        generator: source of the choice of tuples; ``None`` is the global one.

    Raises:
        ValueError: for an unknown kind or form, or a number outside its range.

    Source: Visual Similarity Attention, Eq. 3, gamma 0.2 (stated for re-identification only).
    Differs: warm-up, the number of tuples and frozen batch norm statistics on masked images are our choice.
    """

    def __init__(
        self,
        metric_loss: BatchLoss,
        *,
        kind: str = "triplet",
        gamma: float = 0.2,
        form: str = "absolute",
        warm_up_epochs: int = 1,
        images_per_tuple: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_known("kind", kind, TRAINED_KINDS)
        require_known("form", form, tuple(FORMS))
        if not gamma >= 0:
            raise ValueError(f"gamma={gamma} must be at least 0")
        if warm_up_epochs < 0:
            raise ValueError(f"warm_up_epochs={warm_up_epochs} must be at least 0")
        if images_per_tuple < 1:
            raise ValueError(f"images_per_tuple={images_per_tuple} must be at least 1")
        self.metric_loss = metric_loss
        self.kind, self.gamma, self.form = kind, gamma, form
        self.warm_up_epochs, self.images_per_tuple = warm_up_epochs, images_per_tuple
        self.generator = generator
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch follows, counted from 0; measures start anew."""
        self.epoch = epoch
        self._seen: list[dict[str, Tensor]] = []

    def measures(self) -> dict[str, float]:
        """Means over the steps with mining since ``set_epoch``, empty where there was none.

        ``metric_loss`` and ``mining_loss`` (without ``gamma``); ``tuples``, their number; and what tells whether the
        mining has collapsed: ``mean_mask``, ``zero_maps`` (share of maps without any attention) and
        ``masked_distance`` (mean distance between the masked images of a step).
        """
        if not self._seen:
            return {}
        return {name: float(torch.stack([step[name] for step in self._seen]).mean()) for name in self._seen[0]}

    def forward(self, model: SimilarityAttention, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of a batch.

        Args:
            model: gives features, attention and its settings; not part of this module.
            images: ``(N, 3, H, W)``.
            labels: ``(N,)`` int64.

        Returns:
            Scalar; the metric loss alone during warm-up, with ``gamma`` 0 and for a batch without a tuple.
        """
        feature_maps = read_maps(model.trunk, images[None])[0]
        features: Tensor = model.head(feature_maps)
        labels = labels.to(features.device)
        miner = self.metric_loss.miner
        mined = None if miner is None else miner(features.detach().to(at_least_float32(features)), labels)
        metric_loss: Tensor = self.metric_loss(features, labels, mined)
        if self.epoch < self.warm_up_epochs or self.gamma == 0:
            return metric_loss
        chosen = mined_tuples(mined, labels, self.kind, len(labels) // self.images_per_tuple, self.generator)
        if not chosen.numel():
            return metric_loss
        erased = model.erase(images[chosen], feature_maps[chosen], self.kind)
        mining = mining_loss(erased.features, self.kind, form=self.form).mean()
        self._seen.append({"metric_loss": metric_loss.detach(), "mining_loss": mining.detach()} | _health(erased))
        return metric_loss + self.gamma * mining


@torch.no_grad()
def _health(erased: Erased) -> dict[str, Tensor]:
    features = erased.features.flatten(0, 1).to(at_least_float32(erased.features))
    return {
        "tuples": torch.tensor(float(erased.maps.shape[1])),
        "mean_mask": erased.masks.mean(),
        "zero_maps": (erased.maps.amax(dim=(-2, -1)) == 0).double().mean(),
        "masked_distance": F.pdist(features).mean(),
    }


def _squared_distance(first: Tensor, second: Tensor) -> Tensor:
    return (first - second).square().sum(dim=-1)


def _distance(first: Tensor, second: Tensor) -> Tensor:
    return (_squared_distance(first, second) + SMALLEST_SQUARE).sqrt()
