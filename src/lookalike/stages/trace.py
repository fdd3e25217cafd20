"""Trace one recipe: a training of three steps, embedded and scored by the stages themselves, the same everywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch

from lookalike.files import read_json, read_tensors, write_json
from lookalike.models.embedder import Embedder
from lookalike.paths import episodes_of
from lookalike.segmentation.attention import attend
from lookalike.segmentation.episodes import read_episodes
from lookalike.stages.embed import embed
from lookalike.stages.episodes import episodes
from lookalike.stages.evaluate import evaluate, representation, search_of, searching_roles
from lookalike.stages.segment import segment
from lookalike.stages.train import train
from lookalike.training.model_file import load_model
from lookalike.training.traces.inputs import same_everywhere, write_pictures, write_scenes
from lookalike.training.traces.scores import PAIRS, gradient_norms, watched_scores

SEED = 0
# An epoch is one batch, so that its loss is that of the step; a method that rests in its first epoch does so here.
STEPS = {
    "epochs": 3,
    "batches_per_epoch": 1,
    "evaluate_every": 3,
    "patience": None,
    "collapse": None,
    "metrics": ["R@1"],
}
BATCH = 20


def trace(settings: Mapping[str, Any], *, specification: Mapping[str, Any], output: str) -> None:
    """Write what a recipe computes in float64 on fixed pictures, from a fixed start.

    Args:
        settings: all sections of the recipe, of which batch and budget make way for a trace's own.
        specification: specification of the data set whose protocol is traced; its pictures are not read.
        output: JSON to write, lists of numbers by quantity: ``loss`` and ``gradient/<part>`` of each step, ``scores``
            of 16 pairs, where the scoring ranks ``ranking``, ``metrics/<name>``; of a recipe that segments, ``maps``
            and ``segmentation/<name>`` in place of the last three.
    """
    training = {**settings["train"], "batch_size": BATCH, "budget": STEPS}
    if training["loss"] is None:
        training["budget"] = settings["train"]["budget"]
    with tempfile.TemporaryDirectory() as name, same_everywhere(SEED):
        folder = Path(name)
        segments = settings.get("segment")
        manifest = write_pictures(folder, {**specification, "self_match": True} if segments else specification)
        data: dict[str, Any] = {"manifest": manifest, "root": name}
        model, history = f"{name}/model", f"{name}/history.csv"
        with gradient_norms() as norms:
            kept: dict[str, Any] = {"model": model, "history": history, "resume": f"{name}/unfinished"}
            train(training, seed=SEED, code="", **data, **kept)
        quantities = {"loss": pd.read_csv(history)["loss"].tolist()}
        quantities |= {f"gradient/{part}": values for part, values in norms.items()}
        if segments:
            quantities |= _segmented(segments, model, folder)
        else:
            quantities |= _evaluated(settings, specification, model, data)
    write_json(output, quantities)


def _evaluated(
    settings: Mapping[str, Any], specification: Mapping[str, Any], model: str, data: Mapping[str, Any]
) -> dict[str, list[float]]:
    embeddings, metrics = f"{data['root']}/embeddings", f"{data['root']}/metrics"
    embed(settings["embed"], model=model, **data, embeddings=embeddings)
    asked = {"recall_at": specification["recall_at"], "levels": specification.get("levels", {})}
    evaluate(settings["evaluate"], **asked, model=model, embeddings=embeddings, metrics=metrics)
    tensors, _ = read_tensors(embeddings)
    roles = searching_roles(tensors)
    query, gallery = (representation(tensors, "best", role) for role in roles)
    search = search_of(settings["evaluate"], tensors, *roles, asked["recall_at"], {})
    quantities = watched_scores(settings["evaluate"]["scoring"], load_model(model)[0], query, gallery, search)
    return quantities | {f"metrics/{name}": [value] for name, value in read_json(metrics)["best"].items()}


def _segmented(settings: Mapping[str, Any], model: str, folder: Path) -> dict[str, list[float]]:
    manifest = write_scenes(folder)
    listed, segmentations = episodes_of(manifest, settings["ways"]), str(folder / "segmentations")
    drawn = {"shots": settings["shots"], "episodes": PAIRS // 2, "draws": 1}
    episodes(manifest=manifest, listed=listed, digest=f"{listed}.sha256", **drawn, ways=settings["ways"])
    settings = {**settings, **drawn}
    segment(
        settings,
        model=model,
        manifest=manifest,
        root=str(folder),
        episodes=listed,
        digest=f"{listed}.sha256",
        segmentations=segmentations,
    )
    embedder, about = load_model(model)
    scenes = read_episodes(Path(listed), ways=settings["ways"], **drawn)
    view = about["settings"]["test_image"]
    maps, _ = attend(cast(Embedder, embedder), view, scenes, folder, device=torch.device("cpu"))
    quantities = {"maps": maps.mean(dim=(-2, -1)).flatten().tolist()}
    scores = read_json(segmentations)["best"]
    return quantities | {f"segmentation/{name}": [value] for name, value in scores.items()}
