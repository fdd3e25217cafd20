"""Segment the queries of episodes by the attention of a trained embedder."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.data import read_manifest
from lookalike.data.checksums import file_digest
from lookalike.data.pictures import read_picture
from lookalike.data.readers.pascal5i import VOID, read_mask
from lookalike.files import write_json
from lookalike.learners.saved import CHECKPOINTS, load_model
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.models.embedder import Embedder
from lookalike.segmentation.attention import episode_maps
from lookalike.segmentation.counts import region_counts
from lookalike.segmentation.cuts import THRESHOLDS, candidates
from lookalike.segmentation.episodes import Episode, read_episodes
from lookalike.segmentation.scores import best_threshold, fold_scores
from lookalike.tracking import log_scores
from lookalike.training.images import Images, batches, in_order

BATCH = 64  # pictures, and episodes, at once


def segment(
    settings: Mapping[str, Any],
    *,
    model: str,
    manifest: str,
    root: str,
    episodes: str,
    digest: str,
    segmentations: str,
    tracked: bool = False,
    workers: int = 0,
) -> None:
    """Score the regions that the best and the last checkpoint find.

    Args:
        settings: the recipe's ``segment`` section.
        model: safetensors of a training, on whatever data.
        manifest: CSV of the split; only its masks of queries are opened, to count.
        root: folder of the pictures.
        episodes: CSV of the ``episodes`` stage.
        digest: its SHA-256.
        segmentations: JSON to write: per checkpoint the `fold_scores` as fractions and the share of empty maps; how
            many episodes were counted, and the epochs.
        tracked: whether MLflow gets a copy.
        workers: loading processes; one more than that cut pictures at the same time.

    Raises:
        ValueError: for a list that is not the one of the digest, or too short, and a model that is no ``Embedder``.
    """
    began = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    listed = file_digest(Path(episodes))
    if Path(digest).read_text().split()[0] != listed:
        raise ValueError(f"{episodes} is not the list whose digest {digest} holds; remove both to draw it anew")
    wanted = {name: settings[name] for name in ("ways", "shots", "episodes", "draws")}
    drawn = read_episodes(Path(episodes), **wanted)
    masks = mask_paths(manifest, root)
    scores: dict[str, dict[str, Any]] = {}
    for checkpoint in CHECKPOINTS:
        embedder, about = load_model(model, checkpoint)
        if checkpoint == "last" and about["best_epoch"] == about["epochs"]:
            scores["last"] = scores["best"]
            continue
        if not isinstance(embedder, Embedder):
            raise ValueError(f"{model} holds {type(embedder).__name__}; only an Embedder's attention segments")
        view = about["settings"]["test_image"]
        maps, _ = attend(embedder.to(device), view, drawn, Path(root), device=device, workers=workers)
        with ThreadPoolExecutor(workers + 1) as pool:
            count = partial(_counts, cut=settings["cut"], root=Path(root), masks=masks)
            counts = torch.stack(list(pool.map(count, drawn, maps)))
        scores[checkpoint] = _scored(counts, drawn, settings["cut"]["name"])
        scores[checkpoint]["empty"] = float((maps.flatten(2).amax(dim=2) == 0).double().mean())
    kept = {key: about[key] for key in ("best_epoch", "epochs", "seed", "code", "data")}
    write_json(segmentations, {**scores, **kept, **wanted, "queries": len(drawn), "episodes_sha256": listed})
    if tracked:
        log_scores(
            segmentations,
            model=model,
            settings={"segment": settings},
            device=str(device),
            seconds=time.monotonic() - began,
            digest=listed,
        )


@torch.no_grad()
def attend(
    embedder: Embedder,
    view: Mapping[str, Any],
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
        view: of test pictures.
        episodes: with equal numbers of classes and supports.
        root: folder of the pictures.
        device: of the embedder.
        workers: loading processes.

    Returns:
        On the CPU, as `episode_maps`: of the queries ``(E, W, h, w)`` and of the supports ``(E, W, S, h, w)``.
    """
    trunk, head = trunk_and_head(embedder)
    paths = sorted({path for episode in episodes for path in episode.pictures})
    side = view["crop_px"]
    images = Images([root / path for path in paths], {"resize_px": [side, side], "crop_px": side})
    loaded = batches(images, in_order(len(paths), BATCH), seed=0, device=device, workers=workers)
    features = torch.cat([trunk(pictures) for pictures, _ in loaded])  # (N, C, h, w)
    place = {path: number for number, path in enumerate(paths)}
    queries = torch.tensor([place[episode.query] for episode in episodes])
    supports = torch.tensor([[[place[path] for path in paths] for paths in each.supports] for each in episodes])
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


def found_regions(episode: Episode, maps: Tensor, cut: Mapping[str, Any], root: Path) -> Tensor:
    """Candidates ``(T, W, H, W)`` at the query's own size from its maps ``(W, h, w)``."""
    picture = np.asarray(read_picture(root / episode.query))
    return candidates(dict(cut), picture, heat_map(maps, (picture.shape[0], picture.shape[1])))


def _counts(episode: Episode, maps: Tensor, cut: Mapping[str, Any], root: Path, masks: Mapping[str, Path]) -> Tensor:
    """``(T, W + 1, 4)`` of one episode, the union of the classes last."""
    regions = found_regions(episode, maps, cut, root)
    regions = torch.cat([regions, regions.any(dim=1, keepdim=True)], dim=1)
    return region_counts(regions, true_regions(masks[episode.query], episode.labels))


def _scored(counts: Tensor, episodes: Sequence[Episode], cut: str) -> dict[str, Any]:
    """Scores of counts ``(E, T, W + 1, 4)``; where there are many candidates, with the height chosen for each fold."""
    if cut != "threshold":
        return dict(fold_scores(counts[:, 0], episodes))
    chosen = {fold: best_threshold(counts, episodes, fold) for fold in sorted({each.fold for each in episodes})}
    places = torch.tensor([chosen[episode.fold] for episode in episodes])
    heights = {f"threshold_fold{fold}": round(THRESHOLDS[place].item(), 2) for fold, place in chosen.items()}
    return {**fold_scores(counts[torch.arange(len(counts)), places], episodes), **heights}
