"""Segment the queries of episodes by the attention of a trained embedder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lookalike.base.files import file_digest, write_json
from lookalike.metrics.names import BEST, CHECKPOINTS, REPORTED
from lookalike.models.embedder import Embedder
from lookalike.segmentation.episodes import read_episodes
from lookalike.segmentation.scores import scored
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.recipes import Segment
from lookalike.workflow.training.model_file import load_model
from lookalike.workflow.training.segmentation import attend, episode_counts, mask_paths


def segment(
    settings: Segment,
    *,
    model: str,
    manifest: str,
    root: str,
    episodes: str,
    digest: str,
    segmentations: str,
    workers: int = 0,
) -> None:
    """Score the regions that the last and the best checkpoint find.

    Args:
        settings: the recipe's ``segment`` section.
        model: safetensors of a training, on whatever data.
        manifest: CSV of the split; only its masks of queries are opened, to count.
        episodes: CSV of the ``episodes`` stage.
        digest: file with the SHA-256 of ``episodes``.
        segmentations: JSON to write: per checkpoint what `scored` gives, and the share of empty maps; how many episodes
            were counted, and the epochs.
        workers: loading processes; one more than that cut pictures at the same time.

    Raises:
        ValueError: for a list that is not the one of the digest, or too short, and a model that is no ``Embedder``.
    """
    device = job_device()
    listed = file_digest(Path(episodes))
    if Path(digest).read_text(encoding="utf-8").split()[0] != listed:
        raise ValueError(f"{episodes} is not the list whose digest {digest} holds; remove both to draw it anew")
    wanted = settings.model_dump(include={"ways", "shots", "episodes", "draws"})
    drawn = read_episodes(Path(episodes), **wanted)
    masks = mask_paths(manifest, root)
    scores: dict[str, dict[str, Any]] = {}
    for checkpoint in CHECKPOINTS:
        embedder, trained = load_model(model, checkpoint)
        if checkpoint == BEST and trained.ends_at_its_best:
            scores[BEST] = scores[REPORTED]
            continue
        if not isinstance(embedder, Embedder):
            raise ValueError(f"{model} holds {type(embedder).__name__}; only an Embedder's attention segments")
        view = trained.settings.test_image
        maps, _ = attend(embedder.to(device), view, drawn, Path(root), device=device, workers=workers)
        with ThreadPoolExecutor(workers + 1) as pool:
            count = partial(episode_counts, cut=settings.cut, root=Path(root), masks=masks)
            counts = torch.stack(list(pool.map(count, drawn, maps)))
        scores[checkpoint] = scored(counts, drawn, settings.cut.name)
        scores[checkpoint]["empty"] = float((maps.flatten(2).amax(dim=2) == 0).double().mean())
    write_json(segmentations, {**scores, **trained.facts, **wanted, "queries": len(drawn), "episodes_sha256": listed})
