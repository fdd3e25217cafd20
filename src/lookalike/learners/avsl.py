"""AVSL as recipes train it."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from lookalike.methods.avsl import LEVELS
from lookalike.methods.avsl.graph import relative_change
from lookalike.methods.avsl.loss import AVSLLoss
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.scoring import graph
from lookalike.models.backbones import Trunk
from lookalike.training.learner import Learner, Settings, Tensors, named


class AVSLLearner(Learner):
    """Levels, graph and losses trained together; one backward pass realises the paper's two minimisations."""

    scoring = staticmethod(graph)
    model: AVSL

    def __init__(self, settings: Settings, *, classes: int) -> None:
        super().__init__(settings, classes=classes)
        self._edge_changes: list[Tensor] = []  # of the epoch's batches; on the device, so that no batch waits for them

    @classmethod
    def build(cls, settings: Settings) -> AVSL:
        """The graph over the last three stages of a backbone."""
        trunk = Trunk(**settings["backbone"], levels=LEVELS)
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
        before = self.model.edge_states.clone() if self.model.edges_initialised else None
        with self.half_precision(images):
            representation = self.model(images)
        if before is not None:
            self._edge_changes.append(relative_change(before, self.model.edge_states).mean())
        value: Tensor = self.loss(representation, labels, self.model.distance)
        return value

    def set_epoch(self, epoch: int) -> None:
        """Changes of the edges are counted per epoch."""
        self._edge_changes = []

    def measures(self) -> dict[str, float]:
        """``edge_change``, by how much a batch changes the edges, mean over levels and the epoch's batches.

        The very first batch, whose edges are copied, does not count.
        """
        return {"edge_change": float(torch.stack(self._edge_changes).mean())} if self._edge_changes else {}

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """Embeddings and statistics of every level."""
        return cast(AVSL, model)(images).to(torch.get_default_dtype()).state()  # type: ignore[no-any-return]

    def part_of(self, name: str) -> str:
        """Heads have a rate; all that belongs to graph and proxies has another (the released code's collector)."""
        if name.startswith("model.backbone."):
            return "trunk"
        if name.startswith("model.heads."):
            return "head"
        return "boundaries" if "boundar" in name else "proxies"
