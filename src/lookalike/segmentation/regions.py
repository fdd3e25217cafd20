"""Regions of episodes: those that masks show, those that attention finds, and how many pixels they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.data import read_manifest
from lookalike.data.pictures import read_picture
from lookalike.data.readers.pascal5i import VOID, read_mask
from lookalike.methods.sam.masks import heat_map
from lookalike.segmentation.counts import region_counts
from lookalike.segmentation.cuts import candidates
from lookalike.segmentation.episodes import Episode


def mask_paths(manifest: str, root: str) -> dict[str, Path]:
    """The mask of each test picture of a manifest."""
    frame = read_manifest(Path(manifest))
    test = frame[frame["role"] == "test"]
    return {path: Path(root) / mask for path, mask in zip(test["path"], test["mask"], strict=True)}


def true_regions(mask: Path, labels: Sequence[int]) -> Tensor:
    """Of each class and their union 1 where the mask shows it, 255 where pixels do not count: ``(W + 1, H, W)``."""
    shown = torch.from_numpy(read_mask(mask).copy())
    of_classes = torch.stack([shown == label for label in labels])
    regions = torch.cat([of_classes, of_classes.any(dim=0, keepdim=True)]).to(torch.uint8)
    return torch.where(shown == VOID, torch.tensor(VOID, dtype=torch.uint8), regions)


def found_regions(episode: Episode, maps: Tensor, cut: Mapping[str, Any], root: Path) -> Tensor:
    """Candidates ``(T, W, H, W)`` at the query's own size from its maps ``(W, h, w)``."""
    picture = np.asarray(read_picture(root / episode.query))
    return candidates(dict(cut), picture, heat_map(maps, (picture.shape[0], picture.shape[1])))


def episode_counts(
    episode: Episode, maps: Tensor, cut: Mapping[str, Any], root: Path, masks: Mapping[str, Path]
) -> Tensor:
    """``(T, W + 1, 4)`` of one episode, the union of the classes last."""
    regions = found_regions(episode, maps, cut, root)
    regions = torch.cat([regions, regions.any(dim=1, keepdim=True)], dim=1)
    return region_counts(regions, true_regions(masks[episode.query], episode.labels))
