"""Plain metric learning: an embedder and a loss of its embeddings."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from lookalike.losses import build_loss
from lookalike.methods.contextual.head import Projector
from lookalike.methods.contextual.loss import ContextualLoss, Regularised
from lookalike.models.embedder import Embedder
from lookalike.training.learner import Learner, Settings, Tensors, named


class EmbedderLearner(Learner):
    """Any loss of ``LOSSES`` on the embeddings, or on what a projector makes of them while training."""

    def __init__(self, settings: Settings, *, classes: int) -> None:
        super().__init__(settings, classes=classes)
        projector = settings["projector"]
        self.projector = nn.Identity() if projector is None else Projector(self._dim, **projector)
        self._contextual: list[Tensor] = []  # of the epoch's batches; on the device, so that no batch waits for them

    @property
    def _dim(self) -> int:
        return cast(Embedder, self.model).dim

    @classmethod
    def build(cls, settings: Settings) -> Embedder:
        """An embedder."""
        return Embedder(settings["backbone"], **settings["embedding"])

    def build_loss(self, settings: Settings, classes: int) -> nn.Module:
        """A loss of ``LOSSES``, with the similarity regulariser where the recipe adds it."""
        projector = settings["projector"]
        dim = self._dim if projector is None else projector["width"]
        loss = build_loss(*named(settings["loss"]), classes=classes, embedding_dim=dim)
        regulariser = settings["regulariser"]
        return loss if regulariser is None else Regularised(loss, **regulariser)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        with self.half_precision(images):
            embeddings = self.model(images)
        value: Tensor = self.loss(self.projector(embeddings.to(torch.get_default_dtype())), labels)
        if isinstance(self.loss, ContextualLoss):
            self._contextual.append(self.loss.contextual)
        return value

    def set_epoch(self, epoch: int) -> None:
        """The contextual part is that of an epoch."""
        self._contextual = []

    def measures(self) -> dict[str, float]:
        """``contextual``, the contextual part of the loss of that name, unweighted, mean over the epoch's batches."""
        return {"contextual": torch.stack(self._contextual).mean().item()} if self._contextual else {}

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """``embedding (N, D)``, not normalised."""
        return {"embedding": model(images).to(torch.get_default_dtype())}

    def part_of(self, name: str) -> str:
        """The projector is a part of its own."""
        return "projector" if name.startswith("projector.") else super().part_of(name)
