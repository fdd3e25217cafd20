"""What the steps of a training show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook


@contextmanager
def gradient_norms() -> Iterator[dict[str, list[float]]]:
    """Inside, every step of any optimiser adds the norm of the gradient of each of its groups, under its name."""
    norms: dict[str, list[float]] = {}

    def note(optimiser: Optimizer, arguments: Any, options: Any) -> None:
        for group in optimiser.param_groups:
            gradients = [parameter.grad for parameter in group["params"] if parameter.grad is not None]
            norm = float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0
            norms.setdefault(group["name"], []).append(norm)

    hook = register_optimizer_step_pre_hook(note)
    try:
        yield norms
    finally:
        hook.remove()
