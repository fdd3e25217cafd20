"""AVSL as recipes train it."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from lookalike.methods.avsl.loss import AVSLLoss
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.scoring import graph
from lookalike.models.backbones import Trunk
from lookalike.training.learner import Learner, Settings, Tensors, named


class AVSLLearner(Learner):
    """Levels, graph and losses trained together; one backward pass realises the paper's two minimisations."""

    scoring = staticmethod(graph)
    model: AVSL

    @classmethod
    def build(cls, settings: Settings) -> AVSL:
        """The graph over the last three stages of a backbone."""
        trunk = Trunk(**settings["backbone"], levels=3)
        return AVSL(
            trunk,
            trunk.names,
            settings["embedding"]["dim"],
            image_size=settings["test_image"]["crop_px"],
            **named(settings["method"])[1],
        )

    def build_loss(self, settings: Settings, classes: int) -> AVSLLoss:
        """Proxy Anchor or Margin on the overall distance and on every level's."""
        kind, options = named(settings["loss"])
        return AVSLLoss(kind, classes, embedding_dim=settings["embedding"]["dim"], **options)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch, on edges that have just learned from it."""
        with self.half_precision(images):
            representation = self.model(images)
        value: Tensor = self.loss(representation, labels, self.model.distance)
        return value

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """Embeddings and statistics of every level."""
        return cast(AVSL, model)(images).float().state()  # type: ignore[no-any-return]

    def part_of(self, name: str) -> str:
        """Heads have a rate; all that belongs to graph and proxies has another (the released code's collector)."""
        if name.startswith("model.backbone."):
            return "trunk"
        if name.startswith("model.heads."):
            return "head"
        return "boundaries" if "boundar" in name else "proxies"
