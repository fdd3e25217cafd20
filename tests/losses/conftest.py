from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3])  # class 2 has one item


@pytest.fixture
def labels() -> Tensor:
    return LABELS


@pytest.fixture
def embeddings() -> Tensor:
    """Raw embeddings ``(8, 5)`` whose classes overlap."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    return centres[LABELS] + 0.8 * torch.randn(8, 5, generator=generator, dtype=torch.float64)


@pytest.fixture
def unit(embeddings) -> list[Tensor]:
    return list(F.normalize(embeddings, dim=1))


@pytest.fixture
def triplets() -> tuple[Tensor, Tensor, Tensor]:
    return torch.tensor([0, 1, 2, 3, 4, 6, 7]), torch.tensor([1, 0, 4, 2, 3, 7, 6]), torch.tensor([2, 5, 0, 7, 6, 1, 4])
