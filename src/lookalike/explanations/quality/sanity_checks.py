"""Sanity checks: whether a map changes with partner and weights, and finds the box that makes two images differ.

Randomisation correlates a map with what it becomes, by ranks over its cells: 1 says that it does not depend on what was
changed, 0 that nothing of it is left; so lower is better. Source: Adebayo et al., "Sanity Checks for Saliency Maps"
(2018), for weights, cascading from the top layer down. The partner's check is the like of Sixt et al.'s random logit
for pairs, our choice.

Planted difference: of two equal images one gets a box of another image, which the map must find. Two measures, both of
the order of cells alone, so that maps without a sum (attention, Grad-CAM) have them like those with one, whatever their
scale:

- ``planted_rank``, the measure of the table: with which probability a cell of the box lies above one outside, 0.5 by
  chance. A map that is zero in many places, as those cut off at zero are, is judged by all its cells.
- ``planted_hits``: whether the highest cell lies in the box, by chance as often as the box is large.

What is high is what tells the pair apart: the map of a distance as it is, that of a similarity with its sign changed
(`lookalike.explanations.quality.measures.of_difference`). A map that only shows what is alike says of its lowest places
that they differ. A share of the map's mass is no measure here: maps of likeness have it where the images are equal.
Source: the patch test of Huber et al., "Efficient Explainable Face Verification based on Similarity Score Argument
Backpropagation" (WACV 2024). Differs: the patch is a box of another image from the same place, and lies on the grid
that maps are pooled to, so that chance is its area.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn

from lookalike.explanations.quality.cells import GRID, mean_ranks, on_pixels, pooled, require_maps, spearman

CASCADE = 4  # steps in which all layers are randomised
BOX = 4  # cells to a side of a box: 8.2 % of the grid of 14, as are 2 of 7


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


def draw_boxes(count: int, generator: torch.Generator, side: int = GRID, box: int = BOX) -> Tensor:
    """Boxes of cells, each at an even random place.

    Args:
        count: N.
        generator: on the CPU.
        side: cells to a side of the grid.
        box: cells to a side of the box.

    Returns:
        ``(N, side, side)`` bool.

    Raises:
        ValueError: for a box that is empty or not smaller than the grid.
    """
    if not 1 <= box < side:
        raise ValueError(f"box={box} is outside [1, {side - 1}], below the {side} cells of the grid")
    corner = torch.randint(side - box + 1, (2, count, 1), generator=generator)
    away = torch.arange(side) - corner  # (2, N, side)
    down, across = ((away >= 0) & (away < box)).unbind(0)
    return down[:, :, None] & across[:, None, :]


def planted(images: Tensor, donors: Tensor, boxes: Tensor) -> Tensor:
    """Images with a box of another picture in place of their own.

    Args:
        images: ``(N, 3, H, W)``.
        donors: ``(N, 3, H, W)``, other pictures.
        boxes: ``(N, side, side)`` bool.

    Returns:
        ``(N, 3, H, W)``: with ``images`` the pairs to be explained, equal but for the box.

    Raises:
        ValueError: if shapes do not belong together.
    """
    if images.shape != donors.shape or len(images) != len(boxes):
        raise ValueError(
            f"images {tuple(images.shape)} need donors of their shape and as many boxes, not {tuple(donors.shape)} and "
            f"{tuple(boxes.shape)}"
        )
    pixels = on_pixels(boxes.to(images.device), (images.shape[2], images.shape[3]))
    return torch.where(pixels[:, None], donors, images)


def planted_hits(maps: Tensor, boxes: Tensor) -> Tensor:
    """Whether the highest cell of a map of the difference lies in the box.

    Args:
        maps: ``(N, side, side)`` on the grid of the boxes, high where a pair differs, as of
            `lookalike.explanations.quality.measures.of_difference`.
        boxes: ``(N, side, side)`` bool.

    Returns:
        ``(N,)`` float64, 0 or 1; where several cells are the highest, the share of them in the box. By chance it is
        the share of the cells that are in the box.

    Raises:
        ValueError: if shapes differ.
    """
    _require_boxes(maps, boxes)
    highest = (maps == maps.amax(dim=(1, 2), keepdim=True)).double()
    return (highest * boxes.to(maps.device)).sum(dim=(1, 2)) / highest.sum(dim=(1, 2))


def planted_rank(maps: Tensor, boxes: Tensor) -> Tensor:
    """Probability that a cell of the box lies above a cell outside, equal ones counting half.

    Args:
        maps: ``(N, side, side)`` on the grid of the boxes, high where a pair differs.
        boxes: ``(N, side, side)`` bool.

    Returns:
        ``(N,)`` float64 in [0, 1]: 1 where the whole box is above everything else, 0.5 by chance and for a map that is
        the same everywhere.

    Raises:
        ValueError: if shapes differ.

    Source: Mann and Whitney (1947); the area under the ROC curve of the map as a detector of the box.
    """
    _require_boxes(maps, boxes)
    inside = boxes.to(maps.device).flatten(1)
    ranks = mean_ranks(maps.flatten(1))  # from 0
    count = inside.sum(dim=1).double()
    below = torch.where(inside, ranks, 0).sum(dim=1) - count * (count - 1) / 2  # pairs in which the box is higher
    return below / (count * (inside.shape[1] - count))


def _require_boxes(maps: Tensor, boxes: Tensor) -> None:
    require_maps("maps", maps)
    if maps.shape != boxes.shape:
        raise ValueError(f"maps have shape {tuple(maps.shape)}, they must have that of boxes, {tuple(boxes.shape)}")
