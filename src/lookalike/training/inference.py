"""Represent many pictures with a finished or half-finished model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lookalike.training.images import Loader, in_order
from lookalike.training.learner import Tensors

SEARCHED_AT_ONCE = 256  # pictures of a search between epochs


def represent_images(
    represent: Callable[[nn.Module, Tensor], Tensors],
    model: nn.Module,
    loader: Loader,
    *,
    batch_size: int,
) -> Tensors:
    """Representations of all pictures, in their order.

    The model is left in evaluation mode.

    Args:
        represent: function of the model and a batch of images, gives what is kept of them.
        model: takes images ``(B, 3, H, W)``.
        loader: loads N pictures to the device that the model is on.
        batch_size: pictures at once.

    Returns:
        Tensors with N rows on the CPU.
    """
    model.eval()
    order = in_order(len(loader.images), batch_size)
    with torch.inference_mode():
        parts = [represent(model, pictures) for pictures, _ in loader.batches(order, seed=0)]
        return {name: torch.cat([part[name].cpu() for part in parts]) for name in parts[0]}
