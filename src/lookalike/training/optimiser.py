"""Optimiser with a learning rate for each part of a model, and its schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn, optim

OPTIMISERS: dict[str, Callable[..., optim.Optimizer]] = {"adam": optim.Adam, "adamw": optim.AdamW}


def parameter_groups(model: nn.Module, loss: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Trainable parameters by the part they belong to: ``trunk``, ``head``, ``proxies``, ``boundaries``.

    ``proxies`` are all of the loss's parameters but the distance boundaries that a margin loss learns.
    """
    groups: dict[str, list[nn.Parameter]] = {"trunk": [], "head": [], "proxies": [], "boundaries": []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups["trunk" if name.startswith("trunk.") else "head"].append(parameter)
    for name, parameter in loss.named_parameters():
        groups["boundaries" if "boundar" in name else "proxies"].append(parameter)
    return groups


def build_optimiser(settings: Mapping[str, Any], model: nn.Module, loss: nn.Module) -> optim.Optimizer:
    """Optimiser over all trainable parameters, one group per part, named by it.

    Args:
        settings: ``algorithm``, ``lr`` per part, ``weight_decay`` of the model and ``loss_weight_decay``.
        model: embeds images; its trunk is called ``trunk``.
        loss: may have parameters of its own.
    """
    groups = [
        {
            "params": parameters,
            "name": part,
            "lr": settings["lr"][part],
            "weight_decay": settings["weight_decay" if part in ("trunk", "head") else "loss_weight_decay"],
        }
        for part, parameters in parameter_groups(model, loss).items()
        if parameters
    ]
    return OPTIMISERS[settings["algorithm"]](groups)


def set_rates(optimiser: optim.Optimizer, settings: Mapping[str, Any], schedule: Mapping[str, Any], epoch: int) -> None:
    """Set every group's learning rate for an epoch, counted from 0.

    The rates fall by ``factor`` every ``step_epochs``. During the first ``warm_up_epochs`` the trunk rests and the
    schedule does not advance. A function of the epoch alone, so that a resumed training needs no schedule state.
    """
    warm_up = schedule["warm_up_epochs"]
    steps = max(epoch - warm_up, 0) // schedule["step_epochs"] if schedule["step_epochs"] else 0
    for group in optimiser.param_groups:
        resting = epoch < warm_up and group["name"] == "trunk"
        group["lr"] = 0.0 if resting else settings["lr"][group["name"]] * schedule["factor"] ** steps
