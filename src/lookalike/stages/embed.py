"""Represent the test pictures with a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from lookalike.files import packed_names, write_tensors
from lookalike.metrics.names import CHECKPOINTS
from lookalike.plan.timings import warm_seconds, write_warm
from lookalike.running.machine import job_device
from lookalike.training.evaluation import REPRESENTATIONS, represent_images
from lookalike.training.images import Decoder, Images, Loader
from lookalike.training.learner import Tensors, named
from lookalike.training.methods import LEARNERS
from lookalike.training.model_file import load_model, training_facts
from lookalike.training.roles import embedded_roles, read_role, split_facts


def embed(
    settings: Mapping[str, Any],
    *,
    model: str,
    manifest: str,
    root: str,
    embeddings: str,
    decoded: Mapping[str, Any] | None = None,
    workers: int = 0,
    warm: str = "",
) -> None:
    """Represent every test role and unlabelled pictures, if the recipe asks for it training ones, by both checkpoints.

    Args:
        settings: the recipe's ``embed`` section.
        model: safetensors of a training.
        manifest: CSV of the split.
        root: folder of the pictures.
        embeddings: safetensors to write: ``<checkpoint>/<role>/<name>``, tensors with a row per picture (the last
            checkpoint only where it is not the best one), and ``(N,)`` each ``labels/<role>``, where the manifest has
            cameras ``cameras/<role>``, and of test roles ``levels/<level>/<role>`` for each of its coarser labels; in
            ``names/<role>`` the paths of the original pictures in their data set, as `lookalike.files.unpacked_names`
            reads them.
        decoded: ``folder`` and ``limit_gb`` of a `Decoder`.
        workers: loading processes.
        warm: JSON to write, `lookalike.plan.timings.warm_file`, with what a picture takes; empty for none.
    """
    device = job_device()
    wanted = [*embedded_roles(manifest), *(["train"] if settings["training_pictures"] else [])]
    roles = {role: read_role(manifest, root, role) for role in wanted}
    tensors = {f"labels/{role}": rows.labels for role, rows in roles.items()}
    tensors |= {f"cameras/{role}": rows.cameras for role, rows in roles.items() if rows.cameras is not None}
    tensors |= {f"names/{role}": packed_names(rows.names) for role, rows in roles.items()}
    tensors |= {
        f"levels/{level}/{role}": labels
        for role, rows in roles.items()
        if role != "train"
        for level, labels in rows.coarse.items()
    }
    decoder = Decoder(**(decoded or {}), threads=workers + 1)
    pictures = sum(len(rows.paths) for rows in roles.values())
    about: dict[str, Any] = {}
    took: dict[str, float] = {}
    for checkpoint in CHECKPOINTS:
        network, about = load_model(model, checkpoint)
        network.to(device).to(memory_format=torch.channels_last)
        test_view = about["settings"]["test_image"]
        loaders = {}
        for role, rows in roles.items():
            kept = decoder.pictures(rows.paths, test_view, manifest=manifest, root=root)
            loaders[role] = Loader(Images(rows.paths, test_view, kept), device=device, workers=workers)
        work = partial(_represented, settings, about, network, loaders)
        represented, took[checkpoint] = warm_seconds(work, warm)
        tensors |= {
            f"{checkpoint}/{role}/{name}": tensor for role, each in represented.items() for name, tensor in each.items()
        }
        if about["best_epoch"] == about["epochs"]:
            break  # both are one checkpoint
    facts = training_facts(about)
    facts["pictures"] = pictures
    write_tensors(embeddings, tensors, facts | split_facts(manifest))
    write_warm(warm, min(took.values()) / pictures)


def _represented(
    settings: Mapping[str, Any], about: Mapping[str, Any], network: nn.Module, loaders: Mapping[str, Loader]
) -> dict[str, Tensors]:
    """Representations by role; the same each time, as what a representation draws it draws anew."""
    name, options = named(settings["representation"])
    represent = REPRESENTATIONS[name](LEARNERS[about["settings"]["method"]["name"]], seed=about["seed"], **options)
    return {
        role: represent_images(represent, network, loader, batch_size=settings["batch_size"])
        for role, loader in loaders.items()
    }
