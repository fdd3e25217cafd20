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

    The model is left in evaluation mode. Where a device has no memory for so many pictures at once, half as many are
    tried: a network in evaluation mode takes each by itself.

    Args:
        represent: function of the model and a batch of images, gives what is kept of them.
        model: takes images ``(B, 3, H, W)``.
        loader: loads N pictures to the device that the model is on.
        batch_size: pictures at once, at most.

    Returns:
        Tensors with N rows on the CPU.

    Raises:
        torch.OutOfMemoryError: if there is none for a single picture.
    """
    model.eval()
    while True:
        try:
            return _represented(represent, model, loader, batch_size)
        except torch.OutOfMemoryError:
            if batch_size == 1:
                raise
            batch_size = (batch_size + 1) // 2
            print(f"as many pictures at once do not fit into the memory of the device; {batch_size} are tried")
        torch.cuda.empty_cache()


@torch.inference_mode()
def _represented(
    represent: Callable[[nn.Module, Tensor], Tensors], model: nn.Module, loader: Loader, batch_size: int
) -> Tensors:
    parts = []
    for pictures, _ in loader.batches(in_order(len(loader.images), batch_size), seed=0):
        parts.append({name: tensor.cpu() for name, tensor in represent(model, pictures).items()})
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
