"""A network small enough for loops and finite differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lookalike.methods.sam.head import LinearHead

Network = tuple[nn.Module, LinearHead]


def drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def make_network(seed: int = 0, *, bias: bool = True, batch_norm: bool = False) -> Network:
    norm = [nn.BatchNorm2d(6)] if batch_norm else []
    trunk = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), *norm, nn.ReLU())
    head = LinearHead(nn.Linear(6, 5, bias=bias))
    for number, module in enumerate((trunk, head)):
        module.double()
        for place, parameter in enumerate(module.parameters()):
            parameter.data = 0.5 * drawn(*parameter.shape, seed=1000 * seed + 10 * number + place)
    return trunk, head


def gradients_of(value: Tensor, *modules: nn.Module) -> Tensor:
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters)])


@pytest.fixture
def draw() -> Callable[..., Tensor]:
    """Normal numbers of a shape and a seed."""
    return drawn


@pytest.fixture
def network() -> Callable[..., Network]:
    """Trunk ``(N, 3, H, W)`` to ``(N, 6, H/2, W/2)`` and head to 5 features, in float64."""
    return make_network


@pytest.fixture
def gradients() -> Callable[..., Tensor]:
    """Derivative of a value by all parameters of some modules, in one row."""
    return gradients_of
