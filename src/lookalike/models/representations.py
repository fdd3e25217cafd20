"""What is kept of the test pictures, by the name that recipes give it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from lookalike.methods.diml.scoring import located
from lookalike.training.learner import Learner, Tensors

Represent = Callable[[nn.Module, Tensor], Tensors]


def own(learner: type[Learner]) -> Represent:
    """What the method itself keeps."""
    return learner.represent


def locations(learner: type[Learner], **options: Any) -> Represent:
    """Embedding and locations of an embedder trained in any way, for structural matching.

    ``options`` are ``side`` and ``pooling`` of `DIML`, and which ``global_vector`` is the embedding.
    """
    return partial(located, **options)


REPRESENTATIONS: dict[str, Callable[..., Represent]] = {"own": own, "locations": locations}
