"""Common base of the losses of a batch: checked input, and tuples from a miner unless the caller brings some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import EllipsisType
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor, nn

from lookalike.base.tensors import beside
from lookalike.sampling.miners import Tuples, build_miner


def pair_distance(embeddings: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Euclidean distances ``(T,)`` of the rows ``first`` and ``second``; the gradient at distance 0 is 0."""
    distances: Tensor = torch.linalg.vector_norm(embeddings[first] - embeddings[second], dim=1)
    return distances


def pair_mask(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """``(B, B)`` bool, true at the pairs."""
    mask = torch.zeros(len(labels), len(labels), dtype=torch.bool, device=labels.device)
    mask[first, second] = True
    return mask


def mean_or_zero(values: Tensor) -> Tensor:
    """Mean of the values, and 0 with a (zero) gradient where there are none."""
    return values.sum() / max(values.numel(), 1)


def mean_of_positive(values: Tensor) -> Tensor:
    """Mean of those above 0 of values that are not negative, and 0 with a (zero) gradient where there are none."""
    if values.device.type == "cpu":
        return mean_or_zero(values[values > 0])
    return values.sum() / (values > 0).sum().clamp(min=1)  # choosing some would wait for their number


def same_class(similarity: Tensor, labels: Tensor) -> Tensor:
    """``(n, n)`` bool, which items share their class; refuses similarities and labels that are not of one batch."""
    if similarity.dim() != 2 or labels.shape != similarity.shape[:1] or similarity.shape[0] != similarity.shape[1]:
        raise ValueError(
            f"similarity {tuple(similarity.shape)} and labels {tuple(labels.shape)} must be (n, n) and (n,)"
        )
    return labels[:, None] == labels[None, :]


class Mining(NamedTuple):
    """Default choice of tuples of a loss: a name of :data:`MINERS`, and parameters of that miner."""

    miner: str | None = None  # None takes all tuples of the batch
    parameters: Mapping[str, Any] | None = None


class MiningOptions(TypedDict, total=False):
    """Keywords of :class:`BatchLoss` that a loss with arguments of its own takes as ``**mining`` and hands up."""

    miner: str | None
    miner_parameters: Mapping[str, Any] | None
    generator: torch.Generator | None


class BatchLoss(nn.Module, ABC):
    """A loss over one batch, called like one of pytorch-metric-learning.

    Subclasses write the formula, :meth:`batch_loss`, and state how they choose tuples, :attr:`mining`.

    Args:
        classes: number of classes where the loss keeps a value per class, else ``None``.
        miner: a name of :data:`lookalike.sampling.miners.MINERS`, or ``None`` for all tuples of the batch; left out,
        that of
            :attr:`mining`.
        miner_parameters: of the miner, by name; ``None`` for what :attr:`mining` says of it, else for its defaults.
        generator: what the miner draws from; ``None`` is the global generator.

    Raises:
        ValueError: for an unknown miner, for one of its parameters that it does not know, and for parameters without
            a miner.
    """

    reads_length: ClassVar[bool] = False  # whether unit vectors would give another loss than the embeddings themselves
    mining: ClassVar[Mining] = Mining()

    def __init__(
        self,
        *,
        classes: int | None = None,
        miner: str | EllipsisType | None = ...,
        miner_parameters: Mapping[str, Any] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if miner is ...:
            miner = self.mining.miner
        if miner_parameters is None and miner == self.mining.miner:
            miner_parameters = self.mining.parameters
        if miner is None and miner_parameters:
            raise ValueError(f"miner_parameters {dict(miner_parameters)} without a miner")
        self.classes = classes
        self.miner = None if miner is None else build_miner(miner, miner_parameters or {}, generator=generator)

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: Tuples | None = None) -> Tensor:
        """The loss of a batch.

        Args:
            embeddings: ``(B, D)`` float, not normalised; half precision is promoted to float32, under autocast too.
            labels: ``(B,)`` int64; beside embeddings on a device best on the host, where checking them waits for
                nothing.
            indices_tuple: what a miner returns; takes the place of the loss's own miner.

        Returns:
            Scalar, connected to ``embeddings`` even where no tuple of the batch counts.

        Raises:
            ValueError: for shapes that do not belong together, or a label outside ``[0, classes)``.
        """
        if embeddings.dim() != 2 or labels.shape != embeddings.shape[:1] or not len(labels):
            raise ValueError(
                f"embeddings {tuple(embeddings.shape)} and labels {tuple(labels.shape)} must be (B, D) and (B,)"
            )
        if self.classes is not None and not (labels.min() >= 0 and labels.max() < self.classes):
            raise ValueError(f"labels {int(labels.min())}..{int(labels.max())} are outside [0, {self.classes})")
        embeddings = embeddings.to(torch.promote_types(embeddings.dtype, torch.float32))
        with torch.autocast(embeddings.device.type, enabled=False):
            if indices_tuple is None and self.miner is not None:
                indices_tuple = self.miner(embeddings.detach(), labels)
            return self.batch_loss(embeddings, beside(labels, embeddings), indices_tuple)

    @abstractmethod
    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss for tuples already chosen; ``None`` stands for all tuples of the batch."""


class LibraryLoss(BatchLoss):
    """A loss of pytorch-metric-learning as it is; subclasses say which, and with the numbers of which paper.

    The library takes a batch with no more than one pair of each kind for an empty one, and returns 0.
    """

    def __init__(self, criterion: nn.Module, *, classes: int | None = None, **mining: Unpack[MiningOptions]) -> None:
        super().__init__(classes=classes, **mining)
        self.criterion = criterion

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The library's value."""
        loss: Tensor = self.criterion(embeddings, labels, tuples)
        return loss
