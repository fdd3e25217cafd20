"""Trace one recipe: a training of three steps, embedded and scored by the stages themselves, the same everywhere."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import cast

import pandas as pd
import torch

from lookalike.base.files import read_json, read_tensors, write_json
from lookalike.base.paths import episodes_of
from lookalike.metrics.names import REPORTED
from lookalike.models.embedder import Embedder
from lookalike.segmentation.episodes import read_episodes
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.recipes import Budget, Recipe, Segment
from lookalike.workflow.stages.episodes import episodes
from lookalike.workflow.stages.evaluate import evaluate, representation, search_of, searching_roles
from lookalike.workflow.stages.segment import segment
from lookalike.workflow.stages.train import train
from lookalike.workflow.training.model_file import load_model
from lookalike.workflow.training.segmentation import attend
from lookalike.workflow.training.traces.inputs import same_everywhere, write_pictures, write_scenes
from lookalike.workflow.training.traces.scores import PAIRS, gradient_norms, watched_scores

SEED = 0
# An epoch is one batch, so that its loss is that of the step; a method that rests in its first epoch does so here.
STEPS = Budget(epochs=3, batches_per_epoch=1, evaluate_every=3, patience=None, collapse=None, metrics=["R@1"])
BATCH = 20


def trace(settings: Recipe, *, specification: Dataset, output: str) -> None:
    """Write the numbers that a recipe computes in float64 on fixed pictures, from a fixed start.

    Args:
        settings: the recipe, whose batch and budget make way for a trace's own.
        specification: specification of the data set whose protocol is traced; its pictures are not read.
        output: JSON to write, lists of numbers by quantity: ``loss`` and ``gradient/<part>`` of each step, ``scores``
            of 16 pairs, where the scoring ranks ``ranking``, ``metrics/<name>``; of a recipe that segments, ``maps``
            and ``segmentation/<name>`` in place of the last three.
    """
    learns = settings.train.loss is not None
    training = settings.train.model_copy(update={"batch_size": BATCH} | ({"budget": STEPS} if learns else {}))
    with tempfile.TemporaryDirectory() as name, same_everywhere(SEED):
        folder = Path(name)
        segments = settings.segment
        manifest = write_pictures(
            folder, specification.model_copy(update={"self_match": True}) if segments else specification
        )
        model, history, resume = f"{name}/model", f"{name}/history.csv", f"{name}/unfinished"
        with gradient_norms() as norms:
            train(
                training, seed=SEED, code="", manifest=manifest, root=name, model=model, history=history, resume=resume
            )
        quantities = {"loss": pd.read_csv(history)["loss"].tolist()}
        quantities |= {f"gradient/{part}": values for part, values in norms.items()}
        if segments:
            quantities |= _segmented(segments, model, folder)
        else:
            quantities |= _evaluated(settings, specification, model, manifest)
    write_json(output, quantities)


def _evaluated(settings: Recipe, specification: Dataset, model: str, manifest: str) -> dict[str, list[float]]:
    metrics, embeddings, cut_offs = f"{manifest}.metrics", f"{manifest}.embeddings", specification.recall_at
    evaluate(
        settings.evaluate,
        embedded=settings.embed,
        recall_at=cut_offs,
        levels=specification.levels,
        model=model,
        manifest=manifest,
        root=str(Path(manifest).parent),
        metrics=metrics,
        embeddings=embeddings,
    )
    tensors, _ = read_tensors(embeddings)
    roles = searching_roles(tensors)
    query, gallery = (representation(tensors, REPORTED, role) for role in roles)
    search = search_of(settings.evaluate, tensors, *roles, cut_offs, {})
    quantities = watched_scores(settings.evaluate.scoring, load_model(model)[0], query, gallery, search)
    return quantities | {f"metrics/{name}": [value] for name, value in read_json(metrics)[REPORTED].items()}


def _segmented(settings: Segment, model: str, folder: Path) -> dict[str, list[float]]:
    manifest = write_scenes(folder)
    listed, segmentations = episodes_of(manifest, settings.ways), str(folder / "segmentations")
    drawn = {"shots": settings.shots, "episodes": PAIRS // 2, "draws": 1}
    episodes(manifest=manifest, listed=listed, digest=f"{listed}.sha256", longest=drawn, ways=settings.ways)
    segment(
        settings.model_copy(update=drawn),
        model=model,
        manifest=manifest,
        root=str(folder),
        episodes=listed,
        digest=f"{listed}.sha256",
        segmentations=segmentations,
    )
    embedder, trained = load_model(model)
    scenes = read_episodes(Path(listed), ways=settings.ways, **drawn)
    view = trained.settings.test_image
    maps, _ = attend(cast(Embedder, embedder), view, scenes, folder, device=torch.device("cpu"))
    quantities = {"maps": maps.mean(dim=(-2, -1)).flatten().tolist()}
    scores = read_json(segmentations)[REPORTED]
    return quantities | {f"segmentation/{name}": [value] for name, value in scores.items()}
