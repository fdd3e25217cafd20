"""Represent the test pictures with a trained model; most runs are scored without keeping that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.base.files import packed_names, write_tensors
from lookalike.methods.method import FITTED
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

FIT = "fit"  # beside the roles, for training pictures that a representation is fitted on


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
    """Keep in ``embeddings`` the tensors of `represented` by a recipe's ``embed`` section, for other stages."""
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
    learned = read_role(manifest, root, "train") if settings.representation.name in FITTED else None
    for checkpoint in CHECKPOINTS:
        network, trained = load_model(model, checkpoint)
        network.to(device).to(memory_format=torch.channels_last)
        test_view = trained.settings.test_image
        loaders = {}
        for role, rows in {**roles, **({FIT: learned} if learned else {})}.items():
            kept = decoder.pictures(rows.paths, test_view, manifest=manifest, root=root)
            loaders[role] = Loader(Images(rows.paths, test_view, kept), device=device, workers=decoder.threads - 1)
        work = partial(_represented, settings, trained, network, loaders, learned.labels if learned else None)
        of_roles, seconds = warm_seconds(work, repeated=timed and not took)
        took.append(seconds)
        for role, each in of_roles.items():
            tensors |= {f"{checkpoint}/{role}/{name}": tensor.contiguous() for name, tensor in each.items()}
        if trained.ends_at_its_best:
            break  # both are one checkpoint
    return tensors, {**trained.facts, "pictures": pictures, **split_facts(manifest)}, min(took) / pictures


def _represented(
    settings: Embed, trained: Training, network: nn.Module, loaders: Mapping[str, Loader], labels: Tensor | None
) -> dict[str, Tensors]:
    """Representations by role; the same each time, as a representation draws its random numbers anew.

    A representation that is fitted finds pictures to fit it on at `FIT`, whose labels these are.
    """
    chosen, learner = settings.representation, LEARNERS[trained.settings.method.name]
    of = partial(represent_images, model=network, batch_size=settings.batch_size)
    fit = {} if labels is None else {"fit": (of(learner.represent, loader=loaders[FIT]), labels)}
    represent = REPRESENTATIONS[chosen.name](learner, seed=trained.facts["seed"], **fit, **chosen.options)
    return {role: of(represent, loader=loader) for role, loader in loaders.items() if role != FIT}
