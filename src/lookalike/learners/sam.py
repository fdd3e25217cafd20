"""Similarity mining as recipes train it."""

from __future__ import annotations

import inspect
from typing import cast

from torch import Tensor

from lookalike.learners.embedder import EmbedderLearner
from lookalike.losses import build_loss
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.loss import MetricLoss, SimilarityMiningLoss
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.embedder import Embedder
from lookalike.training.learner import Settings, named

MINING = set(inspect.signature(SimilarityMiningLoss).parameters)


class SAMLearner(EmbedderLearner):
    """An ordinary embedder, trained by a metric loss and by what remains when its attention is erased."""

    loss: SimilarityMiningLoss

    def __init__(self, settings: Settings, *, classes: int) -> None:
        super().__init__(settings, classes=classes)
        self._attention = {key: value for key, value in named(settings["method"])[1].items() if key not in MINING}

    def build_loss(self, settings: Settings, classes: int) -> SimilarityMiningLoss:
        """A loss of ``LOSSES`` that mines tuples, with the mining loss beside it."""
        metric_loss = build_loss(*named(settings["loss"]), classes=classes, embedding_dim=self._dim)
        options = {key: value for key, value in named(settings["method"])[1].items() if key in MINING}
        return SimilarityMiningLoss(cast(MetricLoss, metric_loss), **options)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        with self.half_precision(images):
            # Shares the parameters of the model; kept here, it would save them twice.
            attention = SimilarityAttention(*trunk_and_head(cast(Embedder, self.model)), **self._attention)
            value: Tensor = self.loss(attention, images, labels)
            return value

    def set_epoch(self, epoch: int) -> None:
        """The first epochs train without mining."""
        self.loss.set_epoch(epoch)

    def measures(self) -> dict[str, float]:
        """What tells whether the mining has collapsed."""
        return self.loss.measures()
