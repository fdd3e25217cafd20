"""Measure where the similarity attention of a trained embedder lies, on a fixed list of test triplets."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from lookalike.base.files import write_json
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.metrics.attention import OBJECT, described
from lookalike.metrics.names import CHECKPOINTS
from lookalike.models.embedder import Embedder
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.data import read_manifest
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.training.images import Images, batches, in_order
from lookalike.workflow.training.model_file import load_model
from lookalike.workflow.training.roles import read_role, test_roles

TRIPLETS, SEED = 500, 0  # the same list for all recipes and all seeds of their trainings
BATCH = 32  # triplets at once


def attribute(*, model: str, manifest: str, root: str, attributions: str, workers: int = 0) -> None:
    """Describe the triplet attention of both checkpoints.

    All models are read with the default options of ``SimilarityAttention``: two recipes differ in their weights only.

    Args:
        manifest: CSV of the split; its column ``mask`` is used where it has one.
        attributions: JSON to write: by checkpoint means of `described` over the pictures of all triplets; their draw.

    Raises:
        ValueError: for a model that is no ``Embedder``.
    """
    roles = [read_role(manifest, root, role) for role in test_roles(manifest)]
    paths = [path for role in roles for path in role.paths]
    triplets = draw_triplets(torch.cat([role.labels for role in roles]), TRIPLETS, SEED)
    means: dict[str, dict[str, float]] = {}
    for checkpoint in CHECKPOINTS:
        embedder, trained = load_model(model, checkpoint)
        if not isinstance(embedder, Embedder):
            raise ValueError(f"{model} holds {type(embedder).__name__}; attention is measured of an Embedder only")
        if means and trained.ends_at_its_best:
            means[checkpoint] = next(iter(means.values()))  # both are one checkpoint
            continue
        view = trained.settings.test_image
        pictures, masks = Images(paths, view), Images(_mask_paths(manifest, root), view)
        means[checkpoint] = _described(embedder.to(job_device()), pictures, masks, triplets, workers)
    write_json(attributions, {**means, **trained.facts, "triplets": triplets.shape[1], "triplet_seed": SEED})


def _described(embedder: Embedder, pictures: Images, masks: Images, triplets: Tensor, workers: int) -> dict[str, float]:
    """Means of `described` over the pictures of all triplets ``(3, T)``; of objects only where there are masks."""
    attention, device = SimilarityAttention(*trunk_and_head(embedder)), job_device()
    chunks = [triplets[:, columns].flatten().tolist() for columns in in_order(triplets.shape[1], BATCH)]
    parts = []
    for images, rows in batches(pictures, chunks, seed=SEED, device=device, workers=workers):
        maps = attention.maps(images.view(3, -1, *images.shape[1:]), "triplet")
        heat = heat_map(maps, (images.shape[2], images.shape[3])).flatten(0, 1).cpu()
        objects = [torch.from_numpy(masks[row, SEED][0][..., 0] > OBJECT) for row in rows.tolist() if len(masks)]
        parts.append(described(heat, torch.stack(objects) if objects else None))
    return {name: float(torch.cat([part[name] for part in parts]).mean()) for name in parts[0]}


def _mask_paths(manifest: str, root: str) -> list[Path]:
    frame = read_manifest(Path(manifest))
    roles = test_roles(manifest) if "mask" in frame else ()
    return [Path(root) / path for role in roles for path in frame.loc[frame["role"] == role, "mask"]]
