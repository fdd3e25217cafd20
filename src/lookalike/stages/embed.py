"""Embed the test pictures with a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lookalike.files import write_tensors
from lookalike.manifest import read_role, test_roles
from lookalike.models.inference import embed_images
from lookalike.models.saved import load_model
from lookalike.training.images import Images


def embed(
    settings: Mapping[str, Any], *, model: str, manifest: str, root: str, embeddings: str, workers: int = 0
) -> None:
    """Embed every test role with the best and with the last checkpoint.

    Args:
        settings: the recipe's ``embed`` section.
        model: safetensors of a training.
        manifest: CSV of the split.
        root: folder of the pictures.
        embeddings: safetensors to write: ``<checkpoint>/<role>`` ``(N, D)`` float32 and ``labels/<role>`` ``(N,)``.
        workers: loading processes.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    roles = {role: read_role(manifest, root, role) for role in test_roles(manifest)}
    tensors = {f"labels/{role}": rows.labels for role, rows in roles.items()}
    about: dict[str, Any] = {}
    for checkpoint in ("best", "last"):
        network, about = load_model(model, checkpoint)
        network.to(device).to(memory_format=torch.channels_last)
        view = about["settings"]["test_image"]
        for role, rows in roles.items():
            same = checkpoint == "last" and about["best_epoch"] == about["epochs"]
            tensors[f"{checkpoint}/{role}"] = (
                tensors[f"best/{role}"].clone()
                if same
                else embed_images(
                    network, Images(rows.paths, view), batch_size=settings["batch_size"], device=device, workers=workers
                )
            )
    write_tensors(embeddings, tensors, {key: about[key] for key in ("best_epoch", "epochs", "seed", "code", "data")})
