"""Score one set of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.files import read_tensors, write_json
from lookalike.metrics.ranking import describe_backend
from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings
from lookalike.tracking import Tracked


def evaluate(
    settings: Mapping[str, Any], *, recall_at: Sequence[int], embeddings: str, metrics: str, tags: Mapping[str, str]
) -> None:
    """Score the best and the last checkpoint.

    Args:
        settings: the recipe's ``evaluate`` section.
        recall_at: cut-offs of the data set; those beyond the gallery are left out.
        embeddings: safetensors of the ``embed`` stage.
        metrics: JSON to write: per checkpoint the metrics as fractions; their epochs, and how was searched.
        tags: by which MLflow finds the run.
    """
    tensors, about = read_tensors(embeddings)
    query, gallery = ("query", "gallery") if "labels/query" in tensors else ("test", "test")
    width = len(tensors[f"labels/{gallery}"]) - (query == gallery)
    scores: dict[str, Any] = {
        checkpoint: retrieval_metrics_from_embeddings(
            tensors[f"{checkpoint}/{query}"],
            tensors[f"labels/{query}"],
            tensors[f"{checkpoint}/{gallery}"],
            tensors[f"labels/{gallery}"],
            ks=[k for k in recall_at if k <= width],
            self_match=query == gallery,
            count_query_in_r=settings["count_query_in_r"],
        )
        for checkpoint in ("best", "last")
    }
    counts = {"queries": len(tensors[f"labels/{query}"]), "gallery": width}
    write_json(metrics, {**scores, **about, **counts, "search": describe_backend("torch")})
    with Tracked(tags, {}, existing=True) as tracked:
        for checkpoint, values in scores.items():
            tracked.metrics({f"{checkpoint}/{name}": value for name, value in values.items()})
        tracked.artifact(metrics)
