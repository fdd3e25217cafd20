"""Maps that know nothing of the pair: what an explanation has to be better than."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

SPREAD = 0.25  # deviation of the centre's bell, of the image's sides
SOBEL = ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0))
LUMA = (0.299, 0.587, 0.114)


def random_maps(images: Tensor, side: int, seed: int) -> tuple[Tensor, ...]:
    """Even random numbers, ``(N, side, side)`` for each role of ``(R, N, 3, H, W)`` images."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.rand(*images.shape[:2], side, side, generator=generator).to(images.device).unbind(0))


def centre_maps(images: Tensor, side: int) -> tuple[Tensor, ...]:
    """A bell around the middle of the image."""
    places = (torch.arange(side, device=images.device) + 0.5) / side - 0.5
    bell = torch.exp(-(places[:, None].square() + places.square()) / (2 * SPREAD**2))
    return tuple(bell.expand(images.shape[1], side, side) for _ in images)


def edge_maps(images: Tensor, side: int) -> tuple[Tensor, ...]:
    """Mean length of the brightness's gradient (Sobel) in each cell."""
    weights = images.new_tensor(LUMA)
    grey = (images.flatten(0, 1) * weights[:, None, None]).sum(dim=1, keepdim=True)
    kernel = images.new_tensor(SOBEL)
    both = F.conv2d(F.pad(grey, (1, 1, 1, 1), mode="replicate"), torch.stack([kernel, kernel.T])[:, None])
    length = F.adaptive_avg_pool2d(both.square().sum(dim=1, keepdim=True).sqrt(), side)[:, 0]
    return tuple(length.view(*images.shape[:2], side, side).unbind(0))
