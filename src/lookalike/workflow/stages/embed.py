"""Represent the test pictures with a trained model; most runs are scored without keeping that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from lookalike.base.files import packed_names, write_tensors
from lookalike.metrics.names import CHECKPOINTS
from lookalike.workflow.plan.timings import warm_seconds
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.recipes import Embed
from lookalike.workflow.training.evaluation import REPRESENTATIONS, represent_images
from lookalike.workflow.training.images import Decoder, Images, Loader
from lookalike.workflow.training.learner import Tensors
from lookalike.workflow.training.methods import LEARNERS
from lookalike.workflow.training.model_file import Training, load_model
from lookalike.workflow.training.roles import embedded_roles, read_role, split_facts


def embed(
    settings: Embed,
    *,
    model: str,
    manifest: str,
    root: str,
    embeddings: str,
    decoded: str = "",
    decoded_gb: float = 0.0,
    workers: int = 0,
) -> None:
    """Keep in ``embeddings`` what `represented` gives by a recipe's ``embed`` section, for what looks into it."""
    tensors, about, _ = represented(settings, model, manifest, root, Decoder(decoded, decoded_gb, threads=workers + 1))
    write_tensors(embeddings, tensors, about)


def represented(
    settings: Embed, model: str, manifest: str, root: str, decoder: Decoder, *, timed: bool = False
) -> tuple[Tensors, dict[str, Any], float]:
    """Represent every test role and unlabelled pictures, if the recipe asks for it training ones, by both checkpoints.

    Args:
        settings: the recipe's ``embed`` section.
        decoder: of the pictures, which as many processes load.
        timed: whether the last checkpoint does short work again, as `warm_seconds` does.

    Returns:
        On the CPU ``<checkpoint>/<role>/<name>``, tensors with a row per picture (the best checkpoint only where it is
        not the last one), and ``(N,)`` each ``labels/<role>``, where the manifest has cameras ``cameras/<role>``, and
        of test roles ``levels/<level>/<role>`` for each of its coarser labels; in ``names/<role>`` the paths of the
        original pictures in their data set, as `lookalike.base.files.unpacked_names` reads them. Facts of training and
        split. And the seconds of a picture.
    """
    device = job_device()
    wanted = [*embedded_roles(manifest), *(["train"] if settings.training_pictures else [])]
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
    pictures, took = sum(len(rows.paths) for rows in roles.values()), list[float]()
    for checkpoint in CHECKPOINTS:
        network, trained = load_model(model, checkpoint)
        network.to(device).to(memory_format=torch.channels_last)
        test_view = trained.settings.test_image
        loaders = {}
        for role, rows in roles.items():
            kept = decoder.pictures(rows.paths, test_view, manifest=manifest, root=root)
            loaders[role] = Loader(Images(rows.paths, test_view, kept), device=device, workers=decoder.threads - 1)
        work = partial(_represented, settings, trained, network, loaders)
        of_roles, seconds = warm_seconds(work, repeated=timed and not took)
        took.append(seconds)
        for role, each in of_roles.items():
            tensors |= {f"{checkpoint}/{role}/{name}": tensor.contiguous() for name, tensor in each.items()}
        if trained.ends_at_its_best:
            break  # both are one checkpoint
    return tensors, {**trained.facts, "pictures": pictures, **split_facts(manifest)}, min(took) / pictures


def _represented(
    settings: Embed, trained: Training, network: nn.Module, loaders: Mapping[str, Loader]
) -> dict[str, Tensors]:
    """Representations by role; the same each time, as what a representation draws it draws anew."""
    chosen, learner = settings.representation, LEARNERS[trained.settings.method.name]
    represent = REPRESENTATIONS[chosen.name](learner, seed=trained.facts["seed"], **chosen.options)
    return {
        role: represent_images(represent, network, loader, batch_size=settings.batch_size)
        for role, loader in loaders.items()
    }
