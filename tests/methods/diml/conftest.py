"""Unit vectors that look like images: locations share parts, images of a class resemble each other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F


def images_like(count: int, *, locations: int = 4, dim: int = 6, seed: int = 0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(5, dim, generator=generator, dtype=torch.float64)
    places = torch.randint(5, (count, locations), generator=generator)
    noise = torch.randn(count, locations, dim, generator=generator, dtype=torch.float64)
    regions = 0.3 + parts[places] + 0.7 * noise
    return F.normalize(regions, dim=-1).to(dtype), F.normalize(regions.mean(1), dim=-1).to(dtype)


@pytest.fixture
def make_images():
    return images_like


@pytest.fixture
def query() -> tuple[Tensor, Tensor]:
    return images_like(3, seed=1)


@pytest.fixture
def gallery() -> tuple[Tensor, Tensor]:
    return images_like(5, seed=2)
