"""Draws that are the same in every test."""

import torch
from torch import Tensor
from torch.nn import functional as F


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def unit(n: int, d: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Unit vectors ``(n, d)`` of all directions."""
    return F.normalize(torch.randn(n, d, generator=generator(seed), dtype=dtype), dim=1)


def similarities(n: int = 8, seed: int = 0, scale: float = 1.0) -> Tensor:
    """Cosines of random vectors, the nearer to one another the smaller ``scale``."""
    vectors = torch.randn(n, 6, dtype=torch.float64, generator=generator(seed))
    vectors = F.normalize(torch.ones(6) + scale * vectors, dim=1)
    return vectors @ vectors.T
