"""How many numbers a network has, and keeps of a picture, seen by building it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from lookalike.command.costs.hours import crop_size
from lookalike.training.evaluation import REPRESENTATIONS
from lookalike.training.learner import named
from lookalike.training.methods import LEARNERS


def numbers_of(chosen: Mapping[str, Any], representation: Mapping[str, Any]) -> tuple[int, int]:
    """Numbers of a network's state, and of a picture's representation by it.

    Args:
        chosen: what of a recipe's ``train`` section decides a network's size: ``method``, ``embedding``, ``backbone``,
            ``test_image``.
        representation: section ``embed.representation``.
    """
    method = chosen["method"]["name"]
    network = _network(chosen)
    numbers = sum(tensor.numel() for tensor in network.state_dict().values())
    name, options = named(representation)
    represent = REPRESENTATIONS[name](LEARNERS[method], seed=0, **options)
    with torch.inference_mode():
        kept = represent(network, torch.zeros(1, 3, *crop_size(chosen["test_image"])))
    return numbers, sum(tensor.numel() for tensor in kept.values())


def _network(chosen: Mapping[str, Any]) -> nn.Module:
    """A network of zeros: drawing random weights would take longer than all else here."""
    with torch.device("meta"):
        network = LEARNERS[chosen["method"]["name"]].build(chosen).eval()
    network.to_empty(device="cpu")
    for tensor in network.state_dict().values():
        tensor.zero_()
    return network
