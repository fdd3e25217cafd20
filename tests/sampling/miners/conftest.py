from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from miner_batches import LABELS


@pytest.fixture
def embeddings():
    generator = torch.Generator().manual_seed(1)
    centres = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    return centres[LABELS] + torch.randn(8, 5, generator=generator, dtype=torch.float64)


@pytest.fixture
def distance(embeddings):
    unit = F.normalize(embeddings, dim=1)
    return [[(first - second).square().sum().sqrt().item() for second in unit] for first in unit]
