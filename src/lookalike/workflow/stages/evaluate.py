"""Represent the pictures of a run and score them, in one job."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import torch
from torch import Tensor, nn

from lookalike.base.files import replacing, require_finite, write_json, write_tensors
from lookalike.metrics.clustering import nmi
from lookalike.metrics.definitions import Levels
from lookalike.metrics.names import BEST, CHECKPOINTS, ON_TRAINING, REPORTED
from lookalike.metrics.ranking import describe_backend
from lookalike.metrics.search import COLUMNS, Search, SearchOfClasses
from lookalike.workflow.data.roles import NO_LABEL, UNLABELLED
from lookalike.workflow.plan.timings import warm_seconds, write_timing
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.recipes import Embed, Evaluate
from lookalike.workflow.stages.embed import represented
from lookalike.workflow.training.evaluation import READ_THE_MODEL, SCORINGS
from lookalike.workflow.training.images import Decoder
from lookalike.workflow.training.model_file import load_model

OF_VECTORS = ("cosine",)  # scorings that compare a vector with a vector, which is what k-means groups


def evaluate(
    settings: Evaluate,
    *,
    embedded: Embed,
    recall_at: Sequence[int],
    model: str,
    manifest: str,
    root: str,
    metrics: str,
    classes: str = "",
    levels: Mapping[str, str] | None = None,
    decoded: str = "",
    decoded_gb: float = 0.0,
    workers: int = 0,
    timing: str = "",
    embeddings: str = "",
) -> None:
    """Represent the pictures of a run and score its last and its best checkpoint.

    Args:
        settings: the recipe's ``evaluate`` section.
        embedded: its ``embed`` section.
        recall_at: cut-offs of the data set; those beyond the gallery are left out.
        metrics: JSON to write: per checkpoint the metrics as fractions, ``mAP_<name>`` for each level where the scoring
            gives all scores, ``NMI`` of the labelled pictures that are searched where the recipe asks for it and its
            scoring compares vectors, those of the training pictures with ``train_`` before their names and without
            levels; their epochs, how many ``queries`` had a label, how many of these no picture of the gallery is right
            for (``queries_without_positive``, only where there are such: no metric counts them), how many were
            ``searched`` for, unlabelled ones too, in a ``gallery`` of how many, and how was searched.
        classes: CSV to write, for intervals that hold for other classes too: what the queries of each class reached, as
            `lookalike.metrics.search.COLUMNS`, with ``checkpoint`` and with ``pictures``, ``test`` or ``train``;
            empty for none.
        levels: the data set's levels, by name the ``<level>`` of the manifest's column ``coarse_<level>``.
        timing: table to write with what it takes, as `write_timing` does; empty for none.
        embeddings: safetensors to write with what is scored, as `lookalike.workflow.stages.embed.embed` does; empty for
            none.

    Raises:
        ValueError: if embeddings are not finite, none that is to be scored has a label, or the manifest has no column
            for a level.
    """
    began, device = time.perf_counter(), job_device()
    decoder = Decoder(decoded, decoded_gb, threads=workers + 1)
    tensors, about, picture_s = represented(embedded, model, manifest, root, decoder, timed=bool(timing))
    require_finite(f"embeddings by {model}", tensors)
    represented_s = time.perf_counter() - began
    if embeddings:
        write_tensors(embeddings, tensors, about)
    tensors = {name: tensor.to(device) for name, tensor in tensors.items() if not name.startswith("names/")}
    query, gallery = searching_roles(tensors)
    if missing := [role for role in (query, gallery) if f"labels/{role}" not in tensors]:
        raise ValueError(f"{manifest} has no {missing[0]} pictures with labels: others are embedded, but not scored")
    labelled = len(tensors[f"labels/{query}"])
    tensors = with_unlabelled(tensors, gallery)
    coarse = _coarse_labels(tensors, levels or {}, query, gallery, manifest)
    if settings.nmi and settings.scoring.name not in OF_VECTORS:
        print(f"NMI is not defined for scoring {settings.scoring.name!r}, which compares no vectors: left out")
    reads_model = settings.scoring.name in READ_THE_MODEL
    scores: dict[str, dict[str, float]] = {}
    of_classes: list[pd.DataFrame] = []
    took: list[float] = []
    for checkpoint in CHECKPOINTS:
        if checkpoint == BEST and about["best_epoch"] == about["epochs"]:
            scores[BEST] = scores[REPORTED]
            continue
        network = load_model(model, checkpoint)[0].to(device) if reads_model else None
        search = search_of(settings, tensors, query, gallery, recall_at, coarse)
        timed = bool(timing) and not took
        scores[checkpoint], seconds = _scored(settings, network, tensors, checkpoint, query, gallery, search, timed)
        took.append(seconds)
        of_classes.append(search.means().assign(checkpoint=checkpoint, pictures="test"))
        if "labels/train" in tensors:
            search = search_of(settings, tensors, "train", "train", recall_at, {})
            seen, _ = _scored(settings, network, tensors, checkpoint, "train", "train", search, False)
            scores[checkpoint] |= {f"{ON_TRAINING}{name}": value for name, value in seen.items()}
            of_classes.append(search.means().assign(checkpoint=checkpoint, pictures="train"))
    searched, listed = (len(tensors[f"labels/{role}"]) for role in (query, gallery))
    counts = {"queries": labelled, "searched": searched, "gallery": listed - (query == gallery)}
    asked = search_of(settings, tensors, query, gallery, recall_at, {})
    if alone := int(((asked.class_sizes == 0) & (asked.query_labels > NO_LABEL)).sum()):
        counts["queries_without_positive"] = alone
        print(f"{alone} of {labelled} queries are in no metric: no other picture of their class is searched")
    if beyond := [f"R@{k}" for k in recall_at if k > counts["gallery"]]:
        print(f"{', '.join(beyond)} is in no metric: {counts['gallery']} pictures are searched")
    facts = {**about, **counts, "search": describe_backend("torch")}
    write_json(metrics, {**scores, **facts})
    if classes:
        with replacing(classes) as path:
            table = pd.concat(of_classes)[["checkpoint", "pictures", *COLUMNS]]
            table.to_csv(path, index=False, float_format="%.6g")
    if timing:
        write_timing(timing, time.perf_counter() - began, represented_s, picture_s + min(took) / searched)


def with_unlabelled(tensors: Mapping[str, Tensor], gallery: str) -> dict[str, Tensor]:
    """The tensors with unlabelled pictures among those of the gallery, each the only one of a class of its own.

    So none of them is ever right, and where the gallery searches itself none counts as a query, as it finds no other
    picture of its class. That holds for the coarser labels, too.
    """
    joined = {name: tensor for name, tensor in tensors.items() if UNLABELLED not in name.split("/")}
    if f"labels/{UNLABELLED}" not in tensors:
        return joined
    alone = NO_LABEL - torch.arange(len(tensors[f"labels/{UNLABELLED}"]), device=tensors[f"labels/{UNLABELLED}"].device)
    for name in joined:
        if gallery in name.split("/"):
            others = tensors["/".join(UNLABELLED if part == gallery else part for part in name.split("/"))]
            of_labels = name.startswith(("labels/", "levels/"))
            joined[name] = torch.cat([joined[name], alone if of_labels else others])
    return joined


def _coarse_labels(
    tensors: Mapping[str, Tensor], levels: Mapping[str, str], query: str, gallery: str, manifest: str
) -> Levels:
    """Labels of queries and gallery on every level."""
    known = [name.split("/")[1] for name in tensors if name.startswith("levels/") and name.endswith(f"/{query}")]
    for name, level in levels.items():
        if level not in known:
            columns = ", ".join(f"coarse_{each}" for each in known) or "no coarse_<level>"
            raise ValueError(
                f"levels.{name} of the data set is {level!r}, but {manifest} has no column coarse_{level}; "
                f"it has {columns}"
            )
    return {
        name: (tensors[f"levels/{level}/{query}"], tensors[f"levels/{level}/{gallery}"])
        for name, level in levels.items()
    }


@torch.no_grad()
def _scored(
    settings: Evaluate,
    model: nn.Module | None,
    tensors: Mapping[str, Tensor],
    checkpoint: str,
    query: str,
    gallery: str,
    search: Search,
    timed: bool,
) -> tuple[dict[str, float], float]:
    """Metrics, and the seconds of the search once warm."""
    sides = [representation(tensors, checkpoint, role) for role in (query, gallery)]
    scoring = settings.scoring
    work = partial(SCORINGS[scoring.name], model, *sides, search, **scoring.options)
    scores, seconds = warm_seconds(work, repeated=timed)
    if settings.nmi and scoring.name in OF_VECTORS:
        labelled = search.gallery_labels > NO_LABEL
        scores["NMI"] = nmi(sides[1]["embedding"][labelled], search.gallery_labels[labelled])
    return scores, seconds


def representation(tensors: Mapping[str, Tensor], checkpoint: str, role: str) -> dict[str, Tensor]:
    """Tensors that the ``embed`` stage kept of the pictures of a role, with N rows, by name."""
    prefix = f"{checkpoint}/{role}/"
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def search_of(
    settings: Evaluate,
    tensors: Mapping[str, Tensor],
    query: str,
    gallery: str,
    recall_at: Sequence[int],
    levels: Levels,
) -> SearchOfClasses:
    """The search of one role in another, or in itself.

    Args:
        settings: the recipe's ``evaluate`` section.
        tensors: what the ``embed`` stage wrote.
        query: role that searches.
        gallery: role that is searched.
        recall_at: cut-offs; those beyond the gallery are left out.
        levels: by name the coarser labels of both.
    """
    labels = [tensors[f"labels/{role}"] for role in (query, gallery)]
    width = len(labels[1]) - (query == gallery)
    return SearchOfClasses(
        labels[0],
        labels[1],
        [k for k in recall_at if k <= width],
        self_match=query == gallery,
        count_query_in_r=settings.count_query_in_r,
        query_cameras=tensors.get(f"cameras/{query}"),
        gallery_cameras=tensors.get(f"cameras/{gallery}"),
        levels=levels,
        average_precision=settings.average_precision,
    )


def searching_roles(tensors: Mapping[str, Tensor]) -> tuple[str, str]:
    """Role that searches and role that is searched; both ``test`` where its pictures search each other."""
    return ("query", "gallery") if "labels/query" in tensors else ("test", "test")
