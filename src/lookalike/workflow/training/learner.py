"""Interface of every method to the training loop and to the later stages: a model and its loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import ClassVar

import torch
from torch import Tensor, nn

from lookalike.metrics.search import Scoring, cosine
from lookalike.workflow.settings.model import Part
from lookalike.workflow.settings.recipes import Network, Train

Tensors = dict[str, Tensor]
BFLOAT16 = "bfloat16"  # among the ways of `lookalike.workflow.training.loop`


class Learner(nn.Module, ABC):
    """One method with its loss, built from the ``train`` section of a recipe.

    Its state is saved as ``model.*``, ``loss.*`` and whatever else a method adds; only ``model`` is needed afterwards.

    Args:
        settings: the ``train`` section.
        classes: number of training classes.
    """

    scoring: ClassVar[Scoring] = staticmethod(cosine)  # by which the epochs of a training are compared
    model: nn.Module
    loss: nn.Module

    def __init__(self, settings: Train, *, classes: int) -> None:
        super().__init__()
        self.half_type = torch.bfloat16 if BFLOAT16 in settings.acceleration else torch.float16
        self.mixed_precision: bool = settings.mixed_precision or self.half_type == torch.bfloat16
        self.model = self.build(settings)
        self.loss = nn.Module() if settings.loss is None else self.build_loss(settings, settings.loss, classes)

    @classmethod
    @abstractmethod
    def build(cls, settings: Network) -> nn.Module:
        """The model of a ``train`` section, its backbone with the weights that the section names."""

    @abstractmethod
    def build_loss(self, settings: Train, loss: Part, classes: int) -> nn.Module:
        """The loss of a ``train`` section that names one."""

    @abstractmethod
    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch of images ``(B, 3, H, W)`` with labels ``(B,)``, a scalar.

        Labels may lie on the host, where whatever follows from them alone waits for no device.
        """

    @classmethod
    @abstractmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """Representation of images ``(N, 3, H, W)`` for later stages: tensors with N rows, by name."""

    def set_epoch(self, epoch: int) -> None:
        """Called before each epoch with its index, from 0."""

    def measures(self) -> dict[str, float]:
        """Measures of the method for the history of an epoch."""
        return {}

    def part_of(self, name: str) -> str:
        """Part of the optimiser, with a learning rate of its own, that a parameter belongs to.

        ``boundaries`` are the learned distances of margin losses, ``proxies`` all other parameters of a loss.
        """
        owner, _, rest = name.partition(".")
        if owner == "model":
            return "trunk" if rest.startswith("trunk.") else "head"
        return "boundaries" if "boundar" in name else "proxies"

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """Trainable parameters by part."""
        parts: dict[str, list[nn.Parameter]] = {}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                parts.setdefault(self.part_of(name), []).append(parameter)
        return parts

    def searched(self, model: nn.Module, images: Tensor) -> Tensors:
        """Representation for a search between epochs: as `represent`, computed in the precision of the training."""
        with self.half_precision(images):
            represented = self.represent(model, images)
        return {name: tensor.to(torch.get_default_dtype()) for name, tensor in represented.items()}

    def half_precision(self, images: Tensor) -> AbstractContextManager[None]:
        """Context in which the network computes, where the recipe says so: float16 on a CUDA device only."""
        known = images.device.type == "cuda" or self.half_type == torch.bfloat16
        mixed: AbstractContextManager[None] = torch.autocast(
            images.device.type, self.half_type, enabled=self.mixed_precision and known
        )
        return mixed
