"""A metric loss with the mining loss beside it (paper, Eq. 3), on the tuples that the metric loss mined.

The mining loss is re-exported.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import torch
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_pairs, convert_to_triplets
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.base.checks import require_known
from lookalike.base.tensors import beside
from lookalike.methods.sam.attention import ROLES
from lookalike.methods.sam.head import at_least_float32, raw_features
from lookalike.methods.sam.mining import FORMS, Erased, mining_loss, read_maps, similarity_mining
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.sampling.miners import Miner, Tuples, build_miner, draw_columns, evenly, negative_pairs, preferring

__all__ = ["SimilarityMiningLoss", "mining_loss", "similarity_mining"]

TRAINED_KINDS = ("siamese_same", "triplet", "quadruplet")


def mined_tuples(
    mined: Tuples | None, labels: Tensor, kind: str, limit: int, generator: torch.Generator | None = None
) -> Tensor:
    """Up to ``limit`` tuples of a batch, a random choice of those that were mined.

    Args:
        mined: what a miner returns, triplets or pairs; ``None`` stands for all tuples of the batch.
        labels: ``(N,)`` int64, best on the host: what follows from them waits for nothing there.
        kind: ``siamese_same`` takes the positive pairs, each once whatever its order; ``triplet`` the triplets;
            ``quadruplet`` adds a second negative to each, drawn from a third class, or if there is none from the other
            negatives of the anchor. Pairs become triplets where they share an anchor.
        limit: largest number of tuples, at least 0.
        generator: source of the choice; ``None`` is the global one.

    Returns:
        ``(R, T)`` int64 indices within the batch, where the tuples or else the labels are; T at most ``limit``, fewer
        if fewer were mined.

    Raises:
        ValueError: for another kind (pairs of different images are not mined by erasure), or a negative limit.
    """
    require_known("kind", kind, TRAINED_KINDS)
    if limit < 0:
        raise ValueError(f"limit={limit} is negative")
    if kind == "siamese_same":
        anchor, positive, _, _ = convert_to_pairs(mined, labels)
        pairs = torch.stack([anchor, positive]).sort(dim=0).values  # (2, T); either order is the same pair
        return _some(torch.unique(pairs, dim=1), limit, generator)
    triplets = torch.stack(convert_to_triplets(mined, labels, t_per_anchor="all"))  # (3, T)
    if kind == "triplet":
        return _some(triplets, limit, generator)
    extensible = negative_pairs(labels).sum(dim=1) > 1  # (N,), whether an anchor has a second negative
    if not extensible.all():
        triplets = triplets[:, beside(extensible, triplets)[triplets[0]]]
    return _with_second_negative(_some(triplets, limit, generator), beside(labels, triplets), generator)


def _some(tuples: Tensor, limit: int, generator: torch.Generator | None) -> Tensor:
    """A random choice of columns."""
    device = tuples.device if generator is None else generator.device
    order = torch.randperm(tuples.shape[1], generator=generator, device=device)[:limit]
    return tuples[:, order.to(tuples.device)]


def _with_second_negative(triplets: Tensor, labels: Tensor, generator: torch.Generator | None) -> Tensor:
    anchor, _, negative = triplets
    if not len(anchor):
        return triplets.new_empty(ROLES["quadruplet"], 0)
    apart = negative_pairs(labels)
    others = apart[anchor].scatter(1, negative[:, None], False)  # (T, N)
    # Of a third class where the batch has one.
    allowed = preferring(others & apart[negative], others)
    weights = evenly(allowed, torch.empty(allowed.shape, device=labels.device))
    return torch.cat([triplets, draw_columns(weights, generator)[None]])


class MetricLoss(Protocol):
    """Interface that mining needs of a loss of ``lookalike.losses``.

    Attributes:
        reads_length: whether unit vectors would give another loss than the embeddings themselves.
        miner: what chooses the tuples, ``None`` for all of the batch.
    """

    @property
    def reads_length(self) -> bool: ...

    @property
    def miner(self) -> Miner | None: ...

    def __call__(self, embeddings: Tensor, labels: Tensor, indices_tuple: Tuples | None = None) -> Tensor: ...


class SimilarityMiningLoss(nn.Module):
    """A metric loss plus ``gamma`` times the mining loss of tuples of the batch.

    The metric loss sees every image of the batch once; the mining reads its feature maps and passes the masked images
    of at most ``N / images_per_tuple`` tuples through the network again.

    Args:
        metric_loss: a loss of ``lookalike.losses``. One that reads the length of embeddings gets them as they are,
            any other unit features.
        kind: ``siamese_same``, ``triplet`` or ``quadruplet``.
        gamma: weight of the mining loss, 0 or more.
        form: measure of a triplet's distances, see ``mining_loss``.
        warm_up_epochs: epochs without mining at the start, whose maps are noise.
        images_per_tuple: images of the batch for each tuple that is mined, at least 1.
        miner: a name of ``lookalike.sampling.miners.MINERS`` that gives the tuples, for a loss that mines none;
        ``None`` takes
            those of the metric loss, or all tuples of the batch if it has no miner.
        generator: source of the choice of tuples; ``None`` is the global one.

    Raises:
        ValueError: for an unknown kind, form or miner, or a number outside its range.

    Source: Visual Similarity Attention, Eq. 3, gamma 0.2 (stated for re-identification only).
    Differs: warm-up, the number of tuples and frozen batch norm statistics on masked images are our choice.
    """

    def __init__(
        self,
        metric_loss: MetricLoss,
        *,
        kind: str = "triplet",
        gamma: float = 0.2,
        form: str = "absolute",
        warm_up_epochs: int = 1,
        images_per_tuple: int = 3,
        miner: str | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_known("kind", kind, TRAINED_KINDS)
        require_known("form", form, FORMS)
        if not gamma >= 0:
            raise ValueError(f"gamma={gamma} must be at least 0")
        if warm_up_epochs < 0:
            raise ValueError(f"warm_up_epochs={warm_up_epochs} must be at least 0")
        if images_per_tuple < 1:
            raise ValueError(f"images_per_tuple={images_per_tuple} must be at least 1")
        self.metric_loss = metric_loss
        self.miner = None if miner is None else build_miner(miner, {}, generator=generator)
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

        Raises:
            ValueError: for a loss that reads lengths on a head that is no ``UnitHead``.
        """
        feature_maps = read_maps(model.trunk, images[None])[0]
        embed = partial(raw_features, model.head) if self.metric_loss.reads_length else model.head
        features: Tensor = embed(feature_maps)
        # Miners choose by numbers alone: no gradient.
        detached = features.detach().to(at_least_float32(features))
        miner = self.metric_loss.miner
        mined = None if miner is None else miner(detached, labels)
        metric_loss: Tensor = self.metric_loss(features, labels, mined)
        if self.epoch < self.warm_up_epochs or self.gamma == 0:
            return metric_loss
        if self.miner is not None:
            mined = self.miner(detached, labels)
        limit = len(labels) // self.images_per_tuple
        tuples = beside(mined_tuples(mined, labels, self.kind, limit, self.generator), images)
        if not tuples.numel():
            return metric_loss
        erased = model.erase(images[tuples], feature_maps[tuples], self.kind)  # (R, T, 3, H, W), (R, T, C, h, w)
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
