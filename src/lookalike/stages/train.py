"""Train one recipe on one data set with one seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lookalike.data.checksums import weights_digest
from lookalike.files import replacing, write_tensors
from lookalike.metrics.search import FirstRank, Search
from lookalike.running.machine import job_device
from lookalike.sampling.samplers import build_sampler
from lookalike.settings.layers import canonical
from lookalike.training.checkpoint import ResumeFile
from lookalike.training.evaluation import SEARCHED_AT_ONCE, represent_images
from lookalike.training.images import Decoder, Images, Loader
from lookalike.training.learner import Learner, named
from lookalike.training.loop import Fit, accelerate, fit, seed_everything
from lookalike.training.methods import LEARNERS
from lookalike.training.noise import disturbed
from lookalike.training.roles import pictures_of_super, read_role, test_roles


@dataclass(frozen=True)
class Prepared:
    """What `fit` starts from.

    Attributes:
        images: training pictures in the recipe's view.
        labels: ``(N,)`` int64, of these, counted from 0.
        learner: on its device, with the weights that the seed draws.
        sampler: of their batches.
        facts: number of classes, digests of data and first weights, and which pictures took the place of others.
    """

    images: Images
    labels: Tensor
    learner: Learner
    sampler: Any
    facts: dict[str, Any]


def train(
    settings: Mapping[str, Any],
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
    decoded: Mapping[str, Any] | None = None,
    resume_every_s: float = 0.0,
    workers: int = 0,
) -> None:
    """Train, and keep the model after the last epoch and after the best one.

    Args:
        settings: the recipe's ``train`` section.
        seed: of everything random.
        code: digest of the code behind the result.
        manifest: CSV of the split.
        root: folder of the pictures.
        model: safetensors to write: states ``last/...`` and, where it is another epoch, ``best/...`` of model and loss,
            and what they are about.
        history: CSV to write: loss, and where it was measured R@1, per epoch.
        resume: file of an unfinished training, which is continued if it is this one.
        strangers: manifest of other pictures, for recipes with image noise; else empty.
        strangers_root: folder of these pictures.
        strangers_super: coarse class that they are taken from, whatever their role; ``None`` for all training pictures.
        selection: history of a training without some classes, whose best epoch on these is kept as the best one;
            empty to keep the best epoch on the test pictures, as the papers do.
        decoded: ``folder`` and ``limit_gb`` of a `Decoder`.
        resume_every_s: seconds after which the end of an epoch writes ``resume`` anew.
        workers: loading processes.
    """
    device = job_device()
    seed_everything(seed)
    learns = settings["loss"] is not None
    decoder = Decoder(**(decoded or {}), threads=workers + 1) if learns else Decoder()
    prepared = _prepare(
        settings,
        seed=seed,
        manifest=manifest,
        root=root,
        strangers=strangers,
        strangers_root=strangers_root,
        strangers_super=strangers_super,
        decoder=decoder,
        device=device,
    )
    selected = best_epoch(selection) if selection else None
    chosen = {} if selected is None else {"selected_epoch": selected}
    about = {"settings": dict(settings), "seed": seed, "code": code, **prepared.facts, **chosen}
    # An optimiser's state fits the kind of device that it was made on.
    begun = _digest(canonical({**about, "device": device.type}).encode())
    unfinished = ResumeFile(Path(resume), begun, every_s=resume_every_s)
    with unfinished:
        fitted = fit(
            prepared.learner,
            Loader(prepared.images, device=device, workers=workers),
            prepared.labels,
            prepared.sampler,
            # Without a loss there is nothing to learn: the network is used as it comes.
            settings if learns else {**settings, "budget": {**settings["budget"], "epochs": 0}},
            seed=seed,
            measure=_measure(prepared.learner, settings, manifest, root, decoder, device=device, workers=workers),
            resume=unfinished,
            device=device,
            keep=selected,
        )
        _write(fitted, about, model=model, history=history)
    unfinished.remove()


def _prepare(
    settings: Mapping[str, Any],
    *,
    seed: int,
    manifest: str,
    root: str,
    strangers: str,
    strangers_root: str,
    strangers_super: int | None,
    decoder: Decoder,
    device: torch.device,
) -> Prepared:
    """Pictures with the noise of the recipe, a learner with its first weights, and what a result says of both."""
    pictures = read_role(manifest, root, "train")
    kept = decoder.pictures(pictures.paths, settings["image"], manifest=manifest, root=root)
    others = _strangers(strangers, strangers_root, strangers_super)
    if others:
        kept += decoder.pictures(others, settings["image"], manifest=strangers, root=strangers_root)
    pictures = disturbed(pictures, settings["noise"], others, seed=seed)
    labels, classes = pictures.numbered()
    learner = LEARNERS[settings["method"]["name"]](settings, classes=classes).to(device)
    learner.model.to(memory_format=torch.channels_last)
    accelerate(learner.model, settings["acceleration"])
    sampler = build_sampler(
        *named(settings["sampler"]),
        labels=labels,
        coarse_labels=pictures.coarse.get("super"),
        batch_size=settings["batch_size"],
        seed=seed,
        batches=settings["budget"]["batches_per_epoch"],
    )
    facts = {
        "classes": classes,
        "data": _digest(b"".join(Path(path).read_bytes() for path in (manifest, strangers) if path)),
        "weights": weights_digest(settings["backbone"]["weights"]),
    }
    if strangers_super is not None:
        facts["strangers_super"] = strangers_super
    return Prepared(Images(pictures.paths, settings["image"], kept), labels, learner, sampler, facts)


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
    settings: Mapping[str, Any],
    manifest: str,
    root: str,
    decoder: Decoder,
    *,
    device: torch.device,
    workers: int,
) -> Callable[[], dict[str, float]]:
    """What is measured between epochs: retrieval among the test pictures, or of queries in their gallery."""
    roles = {role: read_role(manifest, root, role) for role in test_roles(manifest)}
    loaders = []
    for rows in roles.values():
        view = settings["test_image"]
        images = Images(rows.paths, view, decoder.pictures(rows.paths, view, manifest=manifest, root=root))
        loaders.append(Loader(images, device=device, workers=workers))
    labels = [rows.labels.to(device) for rows in roles.values()]
    cameras = [None if rows.cameras is None else rows.cameras.to(device) for rows in roles.values()]
    kind = FirstRank if settings["budget"]["metrics"] == ["R@1"] else Search
    search = kind(
        labels[0],
        labels[-1],
        (1,),
        self_match=len(roles) == 1,
        query_cameras=cameras[0],
        gallery_cameras=cameras[-1],
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
        return {name: metrics[name] for name in settings["budget"]["metrics"]}

    return measure
