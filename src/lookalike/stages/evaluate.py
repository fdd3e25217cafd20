"""Score one set of representations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.files import read_tensors, write_json
from lookalike.metrics.ranking import describe_backend
from lookalike.metrics.search import Search
from lookalike.models.saved import CHECKPOINTS, load_model
from lookalike.scoring import SCORINGS
from lookalike.tracking import Tracked
from lookalike.training.learner import named


def evaluate(
    settings: Mapping[str, Any],
    *,
    recall_at: Sequence[int],
    model: str,
    embeddings: str,
    metrics: str,
    tags: Mapping[str, str],
) -> None:
    """Score the best and the last checkpoint.

    Args:
        settings: the recipe's ``evaluate`` section.
        recall_at: cut-offs of the data set; those beyond the gallery are left out.
        model: safetensors of the training.
        embeddings: safetensors of the ``embed`` stage.
        metrics: JSON to write: per checkpoint the metrics as fractions, those of the training pictures with ``train_``
            before their names; their epochs, and how was searched.
        tags: by which MLflow finds the run.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tensors, about = read_tensors(embeddings)
    tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    query, gallery = ("query", "gallery") if "labels/query" in tensors else ("test", "test")
    scores: dict[str, dict[str, float]] = {}
    for checkpoint in CHECKPOINTS:
        if checkpoint == "last" and about["best_epoch"] == about["epochs"]:
            scores["last"] = scores["best"]
            continue
        network = load_model(model, checkpoint)[0].to(device)
        scores[checkpoint] = _scored(settings, network, tensors, checkpoint, query, gallery, recall_at)
        if "labels/train" in tensors:
            own = _scored(settings, network, tensors, checkpoint, "train", "train", recall_at)
            scores[checkpoint] |= {f"train_{name}": value for name, value in own.items()}
    counts = {"queries": len(tensors[f"labels/{query}"]), "gallery": len(tensors[f"labels/{gallery}"])}
    counts["gallery"] -= query == gallery
    write_json(metrics, {**scores, **about, **counts, "search": describe_backend("torch")})
    with Tracked(tags, {}, existing=True) as tracked:
        for checkpoint, values in scores.items():
            tracked.metrics({f"{checkpoint}/{name}": value for name, value in values.items()})
        tracked.artifact(metrics)


@torch.no_grad()
def _scored(
    settings: Mapping[str, Any],
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    checkpoint: str,
    query: str,
    gallery: str,
    recall_at: Sequence[int],
) -> dict[str, float]:
    sides = [
        {
            name.removeprefix(prefix): tensor
            for prefix in [f"{checkpoint}/{role}/"]
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        }
        for role in (query, gallery)
    ]
    labels = [tensors[f"labels/{role}"] for role in (query, gallery)]
    width = len(labels[1]) - (query == gallery)
    search = Search(
        labels[0],
        labels[1],
        [k for k in recall_at if k <= width],
        self_match=query == gallery,
        count_query_in_r=settings["count_query_in_r"],
    )
    name, options = named(settings["scoring"])
    return SCORINGS[name](model, *sides, search, **options)
