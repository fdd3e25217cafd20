"""Embed many pictures with a finished or half-finished model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookalike.training.images import Images, batches, in_order


def embed_images(
    model: nn.Module, images: Images, *, batch_size: int, device: torch.device, workers: int = 0
) -> Tensor:
    """Embeddings of all pictures, in their order.

    The model is left in evaluation mode.

    Returns:
        ``(N, D)`` float32 on the CPU, not normalised.
    """
    model.eval()
    order = in_order(len(images), batch_size)
    with torch.inference_mode():
        loaded = batches(images, order, seed=0, device=device, workers=workers)
        return torch.cat([model(pictures).float().cpu() for pictures, _ in loaded])
