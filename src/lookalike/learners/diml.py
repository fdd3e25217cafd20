"""DIML as recipes train it."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from lookalike.methods.diml.loss import DIMLLoss
from lookalike.methods.diml.model import DIML
from lookalike.methods.diml.scoring import located, structural_matching
from lookalike.models.embedder import Embedder
from lookalike.training.learner import Learner, Settings, Tensors, named


class DIMLLearner(Learner):
    """An embedder whose regions are trained: structure and mean of the regions together."""

    scoring = staticmethod(structural_matching)
    model: DIML

    @classmethod
    def build(cls, settings: Settings) -> DIML:
        """An embedder with its regions; as in training, an image's global vector is the mean of its regions."""
        embedder = Embedder(settings["backbone"], **settings["embedding"])
        return DIML(embedder, "trunk", **{"global_vector": "locations", **named(settings["method"])[1]})

    def build_loss(self, settings: Settings, classes: int) -> DIMLLoss:
        """Margin or Multi-Similarity on the mean of structural and global similarity."""
        kind, options = named(settings["loss"])
        return DIMLLoss(kind, classes, **options)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        with self.half_precision(images):
            regions = self.model.regions(images)
        value: Tensor = self.loss(regions.to(torch.get_default_dtype()), labels)
        return value

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """``embedding (N, D)`` and ``regions (N, R, D)``, unit vectors."""
        return located(cast(DIML, model), images)

    def part_of(self, name: str) -> str:
        """The embedder's trunk lies one step deeper than elsewhere."""
        return super().part_of(name.replace("model.embedder.", "model."))
