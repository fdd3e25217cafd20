"""What may make a training quicker but rounds otherwise: off unless a recipe or a scale asks for it."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import nn

from lookalike.models.backbones import Trunk

# Beside these `lookalike.training.learner.BFLOAT16`, in which a learner then computes.
COMPILE, CUDNN_BENCHMARK = "compile", "cudnn_benchmark"


def accelerate(model: nn.Module, ways: Collection[str]) -> None:
    """Prepare a model, which stays the same module with the same state.

    Args:
        model: network with a `Trunk` somewhere, which takes nearly all of the time.
        ways: ``compile`` compiles the trunk when it is first used, ``cudnn_benchmark`` lets cuDNN try its kernels.
    """
    if CUDNN_BENCHMARK in ways:
        torch.backends.cudnn.benchmark = True
    if COMPILE in ways:
        for module in model.modules():
            if isinstance(module, Trunk):
                module.compile()
