"""Measure where the similarity attention of a trained embedder lies, on a fixed list of test triplets."""

from __future__ import annotations

from pathlib import Path

import torch

from lookalike.data import read_manifest
from lookalike.files import write_json
from lookalike.learners.saved import load_model
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.metrics.attention import OBJECT, described
from lookalike.miners.draws import draw_triplets
from lookalike.models.embedder import Embedder
from lookalike.running.machine import job_device
from lookalike.training.images import Images, batches, in_order
from lookalike.training.roles import read_role, test_roles

TRIPLETS, SEED = 500, 0  # the same list for all recipes and all seeds of their trainings
BATCH = 32  # triplets at once


def attribute(*, model: str, manifest: str, root: str, attributions: str, workers: int = 0) -> None:
    """Describe the triplet attention of the best checkpoint.

    All models are read with the default options of ``SimilarityAttention``: two recipes differ in their weights only.

    Args:
        model: safetensors of a training.
        manifest: CSV of the split; its column ``mask`` is used where it has one.
        root: folder of the pictures.
        attributions: JSON to write: under ``best`` means of `described` over the pictures of all triplets; their draw.
        workers: loading processes.

    Raises:
        ValueError: for a model that is no ``Embedder``.
    """
    device = job_device()
    embedder, about = load_model(model)
    if not isinstance(embedder, Embedder):
        raise ValueError(f"{model} holds {type(embedder).__name__}; attention is measured of an Embedder only")
    attention = SimilarityAttention(*trunk_and_head(embedder)).to(device)
    roles = [read_role(manifest, root, role) for role in test_roles(manifest)]
    view = about["settings"]["test_image"]
    pictures = Images([path for role in roles for path in role.paths], view)
    masks = Images(_mask_paths(manifest, root), view)
    triplets = draw_triplets(torch.cat([role.labels for role in roles]), TRIPLETS, SEED)
    chunks = [triplets[:, columns].flatten().tolist() for columns in in_order(triplets.shape[1], BATCH)]
    parts = []
    for images, rows in batches(pictures, chunks, seed=SEED, device=device, workers=workers):
        maps = attention.maps(images.view(3, -1, *images.shape[1:]), "triplet")
        heat = heat_map(maps, (images.shape[2], images.shape[3])).flatten(0, 1).cpu()
        objects = [masks[row, SEED][0][0] > OBJECT for row in rows.tolist() if len(masks)]
        parts.append(described(heat, torch.stack(objects) if objects else None))
    means = {name: float(torch.cat([part[name] for part in parts]).mean()) for name in parts[0]}
    kept = {key: about[key] for key in ("best_epoch", "epochs", "seed", "code", "data")}
    write_json(attributions, {"best": means, **kept, "triplets": triplets.shape[1], "triplet_seed": SEED})


def _mask_paths(manifest: str, root: str) -> list[Path]:
    frame = read_manifest(Path(manifest))
    roles = test_roles(manifest) if "mask" in frame else ()
    return [Path(root) / path for role in roles for path in frame.loc[frame["role"] == role, "mask"]]
