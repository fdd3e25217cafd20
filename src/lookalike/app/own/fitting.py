"""A network fitted to a folder in one pass, without training: whitened, or by relevant component analysis (RCA)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lookalike.app.own.arguments import MAPS, UNTRAINED
from lookalike.app.own.models import OpenModel
from lookalike.app.own.picture_files import image_batches, pictures_in, tell_passed_over
from lookalike.app.own.recommend.classes import folders_say_roles
from lookalike.base.checks import require_known, require_utf8
from lookalike.base.files import require_finite, write_tensors
from lookalike.base.text import counted, human_seconds, in_shell
from lookalike.methods.whitening import held_out_recall, mappable, mapped, relevant_components, whitening
from lookalike.metrics.names import REPORTED
from lookalike.models.embedder import Embedder
from lookalike.workflow.data.manifest import with_file_hashes
from lookalike.workflow.data.readers import folder as layout
from lookalike.workflow.data.screening import equal_in_class, equal_in_other_classes
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.model import Part, checked
from lookalike.workflow.settings.recipes import Embedding, Network, View

BATCH = 32
RCA, WHITENING = MAPS


@dataclass(frozen=True)
class Fitted:
    """A network with its map.

    Attributes:
        network: in evaluation mode.
        settings: by which it can be built.
        shrinkage: of the map, given or chosen.
        pictures: that it was fitted on.
        classes: of these; 0 of a map without labels.
        recall: R@1 before and after, as `lookalike.methods.whitening.held_out_recall`; ``None`` where too few classes
            or no labels tell it.
        passed_over: a line for each picture that cannot be read, is a copy, or lies in two classes.
    """

    network: Embedder
    settings: Network
    shrinkage: float
    pictures: int
    classes: int
    recall: tuple[float, float] | None
    passed_over: list[str]


def fitted_model(
    model: OpenModel, folder: Path, *, kind: str = RCA, shrinkage: float | None = None, dim: int | None = None
) -> Fitted:
    """A model whose embeddings are mapped by RCA or whitening, fitted to the pictures of a folder.

    Args:
        model: untrained, or a trained embedder.
        folder: with a folder per class, of which ``train`` alone is read where folders say the roles; for whitening any
            pictures at any depth.
        kind: ``rca`` or ``whitening``.
        shrinkage: of the map; ``None`` chooses it, see `lookalike.methods.whitening`.
        dim: numbers of an embedding; ``None`` for as many as before.

    Raises:
        ValueError: for a folder without what the map needs, a picture of which the model makes a number that is not
            finite, a model of another kind than an embedder, or a view that no file states.
    """
    require_known("kind", kind, MAPS)
    mappable(model.network)
    view = checked(View, model.view.dump(), f"{model.name}, its view")
    if model.backbone is None:
        raise ValueError(f"{model.name}: no file could name its network")
    listed = _labelled(folder) if kind == RCA else pd.DataFrame({"path": [each.name for each in pictures_in(folder)]})
    embeddings, rows, passed_over = _embeddings(model, [folder / name for name in listed["path"]])
    if not rows:
        raise ValueError(f"{folder}: none of its {len(listed)} pictures can be read; the first: {passed_over[0]}")
    count, recall = 0, None
    if kind == RCA:
        read = with_file_hashes(listed.iloc[rows], folder)
        doubtful = equal_in_class(read) | equal_in_other_classes(read)
        passed_over += [f"{folder / path}: {reason}" for path, reason in doubtful.items()]
        stays = ~read["path"].isin(doubtful).to_numpy()
        embeddings, labels = embeddings[stays], torch.tensor(read["label"].to_numpy()[stays])
        count = len({*labels.tolist()})
        linear_map = relevant_components(embeddings, labels, shrinkage=shrinkage, dim=dim)
        recall = held_out_recall(embeddings, labels, linear_map.shrinkage)
    else:
        linear_map = whitening(embeddings, shrinkage=shrinkage, dim=dim)
    network = mapped(model.network, linear_map)
    settings = Network(
        backbone=model.backbone,
        embedding=Embedding(pooling=network.pooling, dim=network.dim, initialisation="default"),
        method=Part(name="embedder"),
        test_image=view,
    )
    return Fitted(network, settings.untrained(), linear_map.shrinkage, len(embeddings), count, recall, passed_over)


def write_model(fitted: Fitted, path: Path, **about: str) -> None:
    """Write a fitted model as the file of a training, of no epoch, that every reader of such a file takes.

    Args:
        fitted: the model.
        path: of the safetensors file.
        about: what else the file says of itself.

    Raises:
        OSError: if it cannot be written.
    """
    state = {f"{REPORTED}/model.{name}": tensor for name, tensor in fitted.network.state_dict().items()}
    facts = {"best_epoch": 0, "epochs": 0, "seed": 0, "shrinkage": fitted.shrinkage, "pictures": fitted.pictures}
    write_tensors(path, state, {"settings": fitted.settings.dump(), **facts, **about})


def print_fit(
    model: OpenModel, folder: Path, out: Path, *, kind: str, shrinkage: float | None, dim: int | None
) -> None:
    """Fit a model, write its file, and print its size, map and pictures, and the line to type next.

    Args:
        model: with ``folder``, ``kind``, ``shrinkage`` and ``dim`` as of `fitted_model`.
        folder: beside it.
        out: the file, which is not there yet.
        kind: beside it.
        shrinkage: beside it.
        dim: beside it.

    Raises:
        ValueError: as `fitted_model`.
    """
    start = time.monotonic()
    fitted = fitted_model(model, folder, kind=kind, shrinkage=shrinkage, dim=dim)
    if out.exists():  # by now
        raise ValueError(f"--out {out}: is there already; name a new one")
    write_model(fitted, out, model=model.name, fit=kind)
    tell_passed_over(fitted.passed_over)
    of_classes = f" of {counted(fitted.classes, 'class')}" if fitted.classes else ""
    print(
        f"{out}  {out.stat().st_size:,} bytes: {model.name.removeprefix(UNTRAINED)}, {kind} to {fitted.network.dim} "
        f"numbers, shrinkage {fitted.shrinkage:.2g}, by {counted(fitted.pictures, 'picture')}{of_classes} in "
        f"{human_seconds(time.monotonic() - start)}"
    )
    if fitted.recall:
        before, after = (f"{100 * each:.1f}" for each in fitted.recall)
        how = "" if dim is None else ", with all numbers"
        how += "" if shrinkage is not None else ", a little too good, as the shrinkage was chosen on them"
        print(f"R@1 of unseen classes, each half held out in its turn: {before} % before, {after} % after{how}")
    print(f"Next: lookalike search {in_shell(out)} QUERY --in {in_shell(folder)}")


def _labelled(folder: Path) -> pd.DataFrame:
    """The pictures below a folder that may be learned from, with their labels."""
    try:
        require_utf8(str(folder))
        rows = layout.read(Dataset(title=str(folder), layout="folder"), folder)
    except ValueError as error:
        raise ValueError(f"{error}; --map {WHITENING} needs no classes") from None
    if folders_say_roles(rows):
        rows = rows[rows["role"] == "train"]
    return rows


@torch.inference_mode()
def _embeddings(model: OpenModel, paths: list[Path]) -> tuple[Tensor, list[int], list[str]]:
    """Embeddings ``(N, D)`` of the pictures that can be read, their places, and why others cannot."""
    parts, places, unreadable = list[Tensor](), list[int](), list[str]()
    for rows, images, faults in image_batches(model, paths, batch_size=BATCH, threads=os.cpu_count() or 1):
        unreadable += faults.values()
        if rows:
            seen = model.network(images)
            for row, each in zip(rows, seen, strict=True):
                require_finite(f"{paths[row]}, seen by {model.name}", {"embedding": each})
            parts.append(seen)
            places += rows
    return (torch.cat(parts) if parts else torch.empty(0, 0)), places, unreadable
