"""Segment the queries of episodes by the attention of a trained embedder."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lookalike.data.checksums import file_digest
from lookalike.files import write_json
from lookalike.metrics.names import CHECKPOINTS
from lookalike.models.embedder import Embedder
from lookalike.running.machine import job_device
from lookalike.segmentation.attention import attend
from lookalike.segmentation.episodes import read_episodes
from lookalike.segmentation.scores import episode_counts, mask_paths, scored
from lookalike.training.model_file import load_model, training_facts


def segment(
    settings: Mapping[str, Any],
    *,
    model: str,
    manifest: str,
    root: str,
    episodes: str,
    digest: str,
    segmentations: str,
    workers: int = 0,
) -> None:
    """Score the regions that the best and the last checkpoint find.

    Args:
        settings: the recipe's ``segment`` section.
        model: safetensors of a training, on whatever data.
        manifest: CSV of the split; only its masks of queries are opened, to count.
        root: folder of the pictures.
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
            count = partial(episode_counts, cut=settings["cut"], root=Path(root), masks=masks)
            counts = torch.stack(list(pool.map(count, drawn, maps)))
        scores[checkpoint] = scored(counts, drawn, settings["cut"]["name"])
        scores[checkpoint]["empty"] = float((maps.flatten(2).amax(dim=2) == 0).double().mean())
    kept = training_facts(about)
    write_json(segmentations, {**scores, **kept, **wanted, "queries": len(drawn), "episodes_sha256": listed})
