"""Represent many pictures with a finished or half-finished model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lookalike.training.images import Images, batches, in_order
from lookalike.training.learner import Tensors


def represent_images(
    represent: Callable[[nn.Module, Tensor], Tensors],
    model: nn.Module,
    images: Images,
    *,
    batch_size: int,
    device: torch.device,
    workers: int = 0,
) -> Tensors:
    """Representations of all pictures, in their order.

    The model is left in evaluation mode.

    Args:
        represent: of the model and a batch of images, what is kept of them.
        model: takes images ``(B, 3, H, W)``.
        images: N pictures.
        batch_size: pictures at once.
        device: where the model is.
        workers: loading processes.

    Returns:
        Tensors with N rows on the CPU.
    """
    model.eval()
    order = in_order(len(images), batch_size)
    with torch.inference_mode():
        loaded = batches(images, order, seed=0, device=device, workers=workers)
        parts = [represent(model, pictures) for pictures, _ in loaded]
        return {name: torch.cat([part[name].cpu() for part in parts]) for name in parts[0]}
