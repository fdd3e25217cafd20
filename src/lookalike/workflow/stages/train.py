"""Train one recipe on one data set with one seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from lookalike.base.files import replacing, write_tensors
from lookalike.metrics.search import FirstRank, Search
from lookalike.sampling.samplers import build_sampler
from lookalike.workflow.data.checksums import weights_digest
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.training.checkpoint import ResumeFile
from lookalike.workflow.training.evaluation import SEARCHED_AT_ONCE, represent_images
from lookalike.workflow.training.images import Decoder, Images, Loader
from lookalike.workflow.training.learner import Learner
from lookalike.workflow.training.loop import Fit, accelerate, fit, seed_everything
from lookalike.workflow.training.methods import LEARNERS
from lookalike.workflow.training.noise import disturbed
from lookalike.workflow.training.roles import pictures_of_super, read_role, test_roles


@dataclass(frozen=True)
class Prepared:
    """Pictures, labels, learner, sampler and facts that `fit` starts from."""

    images: Images
    labels: Tensor  # (N,) int64, counted from 0
    learner: Learner
    sampler: Any
    facts: dict[str, Any]  # number of classes, digests of data and first weights, which pictures replaced others


class Strangers(NamedTuple):
    """Other pictures of a training with image noise, as ``strangers``, their root and their super class of `train`."""

    manifest: str
    root: str
    number: int | None


def train(
    settings: Train,
    *,
    seed: int,
    code: str,
    manifest: str,
    root: str,
    model: str,
    history: str,
    resume: str,
    strangers: str = "",
    strangers_root: str = "",
    strangers_super: int | None = None,
    selection: str = "",
    decoded: str = "",
    decoded_gb: float = 0.0,
    resume_minutes: float = 0.0,
    workers: int = 0,
) -> None:
    """Train, and keep the model after the last epoch and after the best one.

    Args:
        settings: the recipe's ``train`` section.
        seed: of everything random.
        model: safetensors to write: states ``last/...`` and, where it is another epoch, ``best/...`` of model and loss,
            and what they are about.
        history: CSV to write: loss, and where it was measured R@1, per epoch.
        resume: file of an unfinished training, which is continued if it is this one.
        strangers: manifest of other pictures, for recipes with image noise; else empty.
        strangers_root: folder of these pictures.
        strangers_super: coarse class that they are taken from, whatever their role; ``None`` for all training pictures.
        selection: history of a training without some classes, whose best epoch on these is kept as the best one;
            empty to keep the best epoch on the test pictures, as the papers do.
        resume_minutes: after which the end of an epoch writes ``resume`` anew.
    """
    device = job_device()
    seed_everything(seed)
    learns = settings.loss is not None
    decoder = Decoder(decoded, decoded_gb, threads=workers + 1) if learns else Decoder()
    others = Strangers(strangers, strangers_root, strangers_super)
    prepared = _prepare(settings, manifest, root, others, decoder, seed=seed, device=device)
    selected = best_epoch(selection) if selection else None
    chosen = {} if selected is None else {"selected_epoch": selected}
    about = {"settings": settings.dump(), "seed": seed, "code": code, **prepared.facts, **chosen}
    # An optimiser's state fits the kind of device that it was made on.
    begun = _digest(canonical({**about, "device": device.type}).encode())
    unfinished = ResumeFile(Path(resume), begun, every_s=60 * resume_minutes)
    with unfinished:
        fitted = fit(
            prepared.learner,
            Loader(prepared.images, device=device, workers=workers),
            prepared.labels,
            prepared.sampler,
            settings if learns else _resting(settings),
            seed=seed,
            measure=_measure(prepared.learner, settings, manifest, root, decoder, device=device, workers=workers),
            resume=unfinished,
            device=device,
            keep=selected,
        )
        _write(fitted, about, model=model, history=history)
    unfinished.remove()


def _resting(settings: Train) -> Train:
    """Without a loss there is nothing to learn: the network is used as it comes."""
    return settings.model_copy(update={"budget": settings.budget.model_copy(update={"epochs": 0})})


def _prepare(
    settings: Train,
    manifest: str,
    root: str,
    strangers: Strangers,
    decoder: Decoder,
    *,
    seed: int,
    device: torch.device,
) -> Prepared:
    """Pictures with the noise of the recipe, a learner with its first weights, and the facts for a result on both."""
    pictures = read_role(manifest, root, "train")
    kept = decoder.pictures(pictures.paths, settings.image, manifest=manifest, root=root)
    others = _strangers(*strangers)
    if others:
        kept += decoder.pictures(others, settings.image, manifest=strangers.manifest, root=strangers.root)
    pictures = disturbed(pictures, settings.noise, others, seed=seed)
    labels, classes = pictures.numbered()
    learner = LEARNERS[settings.method.name](settings, classes=classes).to(device)
    learner.model.to(memory_format=torch.channels_last)
    accelerate(learner.model, settings.acceleration)
    sampler = build_sampler(
        settings.sampler.name,
        settings.sampler.options,
        labels=labels,
        coarse_labels=pictures.coarse.get("super"),
        batch_size=settings.batch_size,
        seed=seed,
        batches=settings.budget.batches_per_epoch,
    )
    facts = {
        "classes": classes,
        "data": _digest(b"".join(Path(path).read_bytes() for path in (manifest, strangers.manifest) if path)),
        "weights": weights_digest(settings.backbone.weights),
    }
    if strangers.number is not None:
        facts["strangers_super"] = strangers.number
    return Prepared(Images(pictures.paths, settings.image, kept), labels, learner, sampler, facts)


def _strangers(manifest: str, root: str, number: int | None) -> list[Path]:
    """Pictures of one coarse class of a manifest, without a number its training pictures; none without a manifest."""
    if number is not None:
        return pictures_of_super(manifest, root, number)
    return read_role(manifest, root, "train").paths if manifest else []


def _write(fitted: Fit, about: Mapping[str, Any], *, model: str, history: str) -> None:
    """Write the history, and then the states of the last epoch and of the best one."""
    with replacing(history) as path:
        rows = pd.DataFrame(fitted.history)
        first = ["epoch", "loss", "R@1"]
        rows.reindex(columns=[*first, *rows.columns.difference(first)]).to_csv(path, index=False)
    epochs = len(fitted.history)
    reached = {"last": fitted.last} | ({"best": fitted.best} if fitted.best_epoch != epochs else {})
    states = {f"{kind}/{key}": value for kind, state in reached.items() for key, value in state.items()}
    write_tensors(model, states, {**about, "epochs": epochs, "best_epoch": fitted.best_epoch})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def best_epoch(history: str) -> int:
    """The first epoch with the best R@1 in the history of a training; 0 for one without epochs."""
    measured = pd.read_csv(history).dropna(subset="R@1")
    return int(measured.sort_values("R@1", ascending=False, kind="stable")["epoch"].iloc[0]) if len(measured) else 0


def _measure(
    learner: Learner,
    settings: Train,
    manifest: str,
    root: str,
    decoder: Decoder,
    *,
    device: torch.device,
    workers: int,
) -> Callable[[], dict[str, float]]:
    """The measurement between epochs: retrieval among the test pictures, or of queries in their gallery."""
    roles = {role: read_role(manifest, root, role) for role in test_roles(manifest)}
    loaders = []
    for rows in roles.values():
        view = settings.test_image
        images = Images(rows.paths, view, decoder.pictures(rows.paths, view, manifest=manifest, root=root))
        loaders.append(Loader(images, device=device, workers=workers))
    labels = [rows.labels.to(device) for rows in roles.values()]
    cameras = [None if rows.cameras is None else rows.cameras.to(device) for rows in roles.values()]
    kind = FirstRank if settings.budget.metrics == ["R@1"] else Search
    search = kind(
        labels[0], labels[-1], (1,), self_match=len(roles) == 1, query_cameras=cameras[0], gallery_cameras=cameras[-1]
    )

    def measure() -> dict[str, float]:
        represented = [
            represent_images(learner.searched, learner.model, loader, batch_size=SEARCHED_AT_ONCE) for loader in loaders
        ]
        query, gallery = (
            {name: tensor.to(device) for name, tensor in side.items()} for side in (represented[0], represented[-1])
        )
        with torch.no_grad():
            metrics = type(learner).scoring(learner.model, query, gallery, search)
        return {name: metrics[name] for name in settings.budget.metrics}

    return measure
