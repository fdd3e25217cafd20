"""Feature maps of the named stages of a backbone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torchvision.models.feature_extraction import create_feature_extractor


def select_stages(output: Mapping[str, Tensor] | Sequence[Tensor], levels: Sequence[str]) -> list[Tensor]:
    """Maps of the levels, lowest first, from what a backbone returns.

    Raises:
        ValueError: if a level is missing, or a sequence has another length than ``levels``.
    """
    if isinstance(output, Mapping):
        missing = [level for level in levels if level not in output]
        if missing:
            raise ValueError(f"levels {missing} are not among the backbone's {list(output)}")
        return [output[level] for level in levels]
    if len(output) != len(levels):
        raise ValueError(f"the backbone returns {len(output)} maps, levels names {len(levels)}")
    return list(output)


def read_stages(
    backbone: nn.Module, levels: Sequence[str], image_size: int
) -> tuple[nn.Module, list[tuple[int, int, int]]]:
    """Module that returns the maps of the levels, and their shapes.

    Args:
        backbone: a module that returns maps already is kept; of any other, the named stages are read.
        levels: names of the stages, lowest first.
        image_size: side in pixels of the empty image it is tried with.

    Returns:
        The module, which shares the backbone's parameters, and per level channels, height and width.

    Raises:
        ValueError: if the backbone has no such stages, or a stage is no stack of maps.
    """
    like = next(backbone.parameters(), torch.empty(0))
    image = torch.zeros(1, 3, image_size, image_size, dtype=like.dtype, device=like.device)
    modes = {part: part.training for part in backbone.modules()}
    reader = backbone
    try:
        with torch.no_grad():
            output = backbone.eval()(image)
            if isinstance(output, Tensor):
                reader = create_feature_extractor(backbone, return_nodes=list(levels))
                output = reader.eval()(image)
                reader.train(modes[backbone])
    finally:
        # The reader shares its parts with the backbone; frozen batch normalisation stays frozen.
        for part, training in modes.items():
            part.training = training
    stages = select_stages(output, levels)
    for level, stage in zip(levels, stages, strict=True):
        if stage.ndim != 4:
            raise ValueError(f"{level} gives shape {tuple(stage.shape)}, it must give maps (N, C, H, W)")
    return reader, [(stage.shape[1], stage.shape[2], stage.shape[3]) for stage in stages]
