"""One-shot segmentation of a data set on disk: attention of its episodes, regions that masks and attention show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.models.embedder import Embedder
from lookalike.segmentation.attention import episode_maps
from lookalike.segmentation.counts import region_counts
from lookalike.segmentation.cuts import candidates
from lookalike.segmentation.episodes import Episode
from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.readers.pascal5i import VOID, read_mask
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.recipes import Cut, GrabCut, View
from lookalike.workflow.training.images import Images, batches, in_order

BATCH = 64  # pictures, and episodes, at once


@torch.no_grad()
def attend(
    embedder: Embedder,
    view: View,
    episodes: Sequence[Episode],
    root: Path,
    *,
    device: torch.device,
    workers: int = 0,
) -> tuple[Tensor, Tensor]:
    """Attention of all episodes; each picture passes the network once.

    Pictures are seen whole, resized to the square of the view's crop: cropping could cut off what is looked for.

    Args:
        embedder: trained, in evaluation mode.
        view: how test pictures become images, a recipe's ``test_image``.
        episodes: episodes with equal numbers of classes and supports.
        root: folder of the pictures.
        device: device that the embedder is on.
        workers: loading processes.

    Returns:
        On the CPU, as `episode_maps`: of the queries ``(E, W, h, w)`` and of the supports ``(E, W, S, h, w)``.
    """
    trunk, head = trunk_and_head(embedder)
    paths = sorted({path for episode in episodes for path in episode.pictures})
    side = cast(int, view.crop_px)
    images = Images([root / path for path in paths], View(resize_px=[side, side], crop_px=side))
    loaded = batches(images, in_order(len(paths), BATCH), seed=0, device=device, workers=workers)
    features = torch.cat([trunk(pictures) for pictures, _ in loaded])  # (N, C, h, w)
    index_of = {path: number for number, path in enumerate(paths)}
    queries = torch.tensor([index_of[episode.query] for episode in episodes])
    supports = torch.tensor(
        [[[index_of[path] for path in paths] for paths in episode.supports] for episode in episodes]
    )
    parts = [
        [maps.cpu() for maps in episode_maps(features[queries[rows]], features[supports[rows]], head)]
        for rows in in_order(len(episodes), BATCH)
    ]
    of_queries, of_supports = (torch.cat(part) for part in zip(*parts, strict=True))
    return of_queries, of_supports


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


def found_regions(episode: Episode, maps: Tensor, cut: Tree, root: Path) -> Tensor:
    """Candidates ``(T, W, H, W)`` at the query's own size from its maps ``(W, h, w)``, cut as `candidates` does."""
    picture = np.asarray(read_picture(root / episode.query))
    return candidates(cut, picture, heat_map(maps, (picture.shape[0], picture.shape[1])))


def episode_counts(episode: Episode, maps: Tensor, cut: Cut | GrabCut, root: Path, masks: Mapping[str, Path]) -> Tensor:
    """``(T, W + 1, 4)`` of one episode, the union of the classes last."""
    regions = found_regions(episode, maps, cut.dump(), root)
    regions = torch.cat([regions, regions.any(dim=1, keepdim=True)], dim=1)
    return region_counts(regions, true_regions(masks[episode.query], episode.labels))
