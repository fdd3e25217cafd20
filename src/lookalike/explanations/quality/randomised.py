"""Sanity checks: whether a map changes with the partner and with the weights.

Both correlate a map with what it becomes, by ranks over its cells: 1 says that it does not depend on what was changed,
0 that nothing of it is left; so lower is better.

Source: Adebayo et al., "Sanity Checks for Saliency Maps" (2018), for weights, cascading from the top layer down. The
partner's check is the like of Sixt et al.'s random logit for pairs, our choice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn

from lookalike.explanations.quality.pooled import GRID, pooled
from lookalike.explanations.quality.ranks import spearman

CASCADE = 4  # steps in which all layers are randomised


def map_correlation(first: Tensor, second: Tensor, side: int = GRID) -> Tensor:
    """Spearman's correlation of two maps of each image, cell by cell of one grid.

    With ``first`` explained beside the partner and ``second`` beside a random one, this is partner randomisation.

    Args:
        first: ``(N, h, w)``.
        second: ``(N, h', w')``.
        side: cells to a side.

    Returns:
        ``(N,)`` float64 in [-1, 1]; NaN where a map is the same everywhere.

    Raises:
        ValueError: for maps that are none, or not as many.
    """
    return spearman(pooled(first, side).flatten(1), pooled(second, side).flatten(1))


def weight_randomisation(
    maps_of: Callable[[nn.Module], Tensor],
    model: nn.Module,
    generator: torch.Generator,
    *,
    steps: int = CASCADE,
    side: int = GRID,
) -> Tensor:
    """Correlation of a model's maps with those of copies whose weights are randomised from the top down.

    Args:
        maps_of: a model's maps ``(N, h, w)`` of the same images.
        model: stays as it is.
        generator: on the CPU, of the random weights.
        steps: of the cascade.
        side: cells to a side.

    Returns:
        ``(steps, N)`` float64, the last of a model without any trained weight.
    """
    before = maps_of(model)
    return torch.stack([map_correlation(before, maps_of(each), side) for each in cascade(model, generator, steps)])


def cascade(model: nn.Module, generator: torch.Generator, steps: int = CASCADE) -> Iterator[nn.Module]:
    """Copies of a model with more and more of its layers randomised, from the top down; the model stays as it is.

    What a layer has learned, its parameters and what it saves with them, is shuffled within each tensor.

    Args:
        model: layers are taken in the reverse of the order in which modules are registered, a module's own tensors
            before those of its children.
        generator: on the CPU.
        steps: number of copies; the layers are shared out among them as evenly as they can be.

    Yields:
        Models in the same mode and on the same device, the last with all layers randomised.

    Raises:
        ValueError: for no step, or more steps than layers.

    Differs: weights are not drawn anew. A shuffled tensor keeps its distribution, so that no layer needs an initialiser
    of its own and no signal dies on its way through many of them; a tensor of equal values, or of one, stays.
    """
    current = copy.deepcopy(model)
    layers = [learned for module in _top_down(current) if (learned := _learned(module))]
    if not 1 <= steps <= len(layers):
        raise ValueError(f"steps={steps} is outside [1, {len(layers)}], the number of layers with weights")
    ends = [round(step * len(layers) / steps) for step in range(steps + 1)]
    for start, end in pairwise(ends):
        for tensor in (tensor for layer in layers[start:end] for tensor in layer):
            places = torch.randperm(tensor.numel(), generator=generator).to(tensor.device)
            tensor.copy_(tensor.flatten()[places].view_as(tensor))
        yield copy.deepcopy(current)


def _top_down(module: nn.Module) -> list[nn.Module]:
    """A module and all below it, once each, the last child first."""
    below = [each for child in reversed(list(module.children())) for each in _top_down(child)]
    return list(dict.fromkeys([module, *below]))


def _learned(module: nn.Module) -> list[Tensor]:
    """A module's own tensors of numbers that are saved with it; they share its memory and take no gradient."""
    saved = module.state_dict()
    return [tensor for name, tensor in saved.items() if "." not in name and tensor.is_floating_point()]
