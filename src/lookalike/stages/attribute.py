"""Measure where the similarity attention of a trained embedder lies, on a fixed list of test triplets."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from lookalike.data import read_manifest
from lookalike.files import write_json
from lookalike.learners.saved import load_model
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.miners import draw_columns, evenly
from lookalike.models.embedder import Embedder
from lookalike.training.images import Images, batches, in_order
from lookalike.training.roles import read_role, test_roles

TRIPLETS, SEED = 500, 0  # the same list for all recipes and all seeds of their trainings
BATCH = 32  # triplets at once
ATTENDED = 0.5  # of a heat map from 0 to 1
OBJECT = 127  # masks' grey levels count annotators: above it most saw the object


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
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
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
    for images, chosen in batches(pictures, chunks, seed=SEED, device=device, workers=workers):
        maps = attention.maps(images.view(3, -1, *images.shape[1:]), "triplet")
        heat = heat_map(maps, (images.shape[2], images.shape[3])).flatten(0, 1).cpu()
        objects = [masks[row, SEED][0][0] > OBJECT for row in chosen.tolist() if len(masks)]
        parts.append(described(heat, torch.stack(objects) if objects else None))
    means = {name: float(torch.cat([part[name] for part in parts]).mean()) for name in parts[0]}
    kept = {key: about[key] for key in ("best_epoch", "epochs", "seed", "code", "data")}
    write_json(attributions, {"best": means, **kept, "triplets": triplets.shape[1], "triplet_seed": SEED})


def draw_triplets(labels: Tensor, count: int, seed: int) -> Tensor:
    """Anchors in random order, none twice, each with a positive and a negative, all drawn evenly.

    Args:
        labels: ``(N,)`` int64.
        count: largest number of triplets.
        seed: of the draw.

    Returns:
        ``(3, T)`` int64 row numbers; T is ``count``, or fewer if there are fewer anchors.

    Raises:
        ValueError: if no picture has both a partner of its class and one of another.
    """
    generator = torch.Generator().manual_seed(seed)
    _, numbers, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    able = (sizes[numbers] > 1).nonzero().squeeze(1)
    if not len(able) or len(sizes) < 2:
        raise ValueError(f"{len(labels)} labels of {len(sizes)} classes make no triplet")
    anchor = able[torch.randperm(len(able), generator=generator)[:count]]
    same = labels[anchor, None] == labels  # (T, N)
    partners = (same.scatter(1, anchor[:, None], False), ~same)
    return torch.stack([anchor, *(draw_columns(evenly(each, torch.empty(each.shape)), generator) for each in partners)])


def described(heat: Tensor, objects: Tensor | None = None) -> dict[str, Tensor]:
    """Where the attention of each picture lies, as shares; 0 for a picture without any.

    Args:
        heat: ``(N, H, W)``, each map from 0 to 1 or zero everywhere.
        objects: ``(N, H, W)`` bool, pixels of the object.

    Returns:
        ``(N,)`` float64 each: ``coverage``, share of the pixels above 0.5; ``spread``, share of the pixels over which
        evenly spread attention would have the same entropy; ``empty``, 1 for a map of zeros; with objects
        ``on_object``, share of the attention on the object, and ``object_area``, the same for an even map.
    """
    pixels = heat.flatten(1).double()
    mass = pixels.sum(dim=1)
    shares = pixels / mass.clamp_min(torch.finfo(torch.float64).tiny)[:, None]
    entropy = -torch.xlogy(shares, shares).sum(dim=1)
    found = {
        "coverage": (pixels > ATTENDED).double().mean(dim=1),
        "spread": torch.where(mass > 0, entropy.exp() / pixels.shape[1], 0.0),
        "empty": (mass == 0).double(),
    }
    if objects is not None:
        inside = objects.flatten(1).double()
        found |= {"on_object": (shares * inside).sum(dim=1), "object_area": inside.mean(dim=1)}
    return found


def _mask_paths(manifest: str, root: str) -> list[Path]:
    frame = read_manifest(Path(manifest))
    roles = test_roles(manifest) if "mask" in frame else ()
    return [Path(root) / path for role in roles for path in frame.loc[frame["role"] == role, "mask"]]
