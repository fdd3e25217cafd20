"""Measure one method's explanations of a trained model, on triplets that all methods share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lookalike.base.checks import require_known
from lookalike.base.files import write_json
from lookalike.explanations.choice import methods_of
from lookalike.explanations.quality.measures import CONTROLS, Triplets, explainer, measured, scores_of
from lookalike.explanations.quality.parts import ALPHAS
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.stages.triplets import ROLES
from lookalike.workflow.training.annotations import Annotations, read_annotations
from lookalike.workflow.training.images import Images, batches, in_order
from lookalike.workflow.training.model_file import load_model

BATCH = 25  # triplets at once; each batch has draws of its own
DRAWS = 3  # seeds that `measured` takes, counted from the one it is given
OF_PARTS = ("agreement", "pck@0.1", "pck@0.2")


def explain(
    *,
    model: str,
    method: str,
    protocol: Mapping[str, Any],
    triplets: str,
    manifest: str,
    root: str,
    layout: str,
    measures: str,
    workers: int = 0,
) -> None:
    """Write the measures of each triplet.

    Args:
        model: safetensors of a training; its best checkpoint is explained.
        method: of explanation, or one of the controls.
        protocol: ``seed``, ``grid``, ``steps`` and ``substitutes`` of ``params/explanations.yaml``.
        triplets: CSV that the stage ``triplets`` wrote.
        layout: of the data set, which says whether parts are known.
        measures: JSON to write: ``values``, by measure a number or null for each triplet; ``reasons``, why a measure
            is not there; what the object was, and what the model's file says of itself.

    Raises:
        ValueError: for a method that does not explain the model.
    """
    device = job_device()
    network, trained = load_model(model)
    if method not in CONTROLS:
        require_known(f"{model}, method", method, methods_of(network))
    network.to(device).to(memory_format=torch.channels_last)  # half the time on a processor
    view = trained.settings.test_image
    known = read_annotations(manifest, root, view, layout)
    drawn = pd.read_csv(triplets, dtype=str, keep_default_na=False)
    paths = [str(path) for role in ROLES for path in drawn[role]]
    pictures = Images([Path(root) / path for path in paths], view)
    parts: list[dict[str, Tensor]] = []
    chunks = [torch.arange(len(drawn))[rows] for rows in in_order(len(drawn), BATCH)]
    places = [torch.cat([rows + role * len(drawn) for role in range(len(ROLES))]).tolist() for rows in chunks]
    loaded = batches(pictures, places, seed=protocol["seed"], device=device, workers=workers)
    chosen = explainer(method, seed=protocol["seed"], side=protocol["grid"])
    for number, (images, _) in enumerate(loaded):
        some = drawn.iloc[chunks[number].tolist()]
        seen = _triplets(images.view(len(ROLES), -1, *images.shape[1:]), some, known)
        parts.append(
            measured(
                chosen,
                network,
                scores_of(network, method),
                seen,
                seed=protocol["seed"] + DRAWS * number,
                side=protocol["grid"],
                steps=protocol["steps"],
                substitutes=protocol["substitutes"],
            )
        )
        print(f"{sum(len(rows) for rows in chunks[: number + 1])} of {len(drawn)} triplets", flush=True)
    values = {name: torch.cat([part[name].cpu() for part in parts]).tolist() for name in parts[0]}
    numbers = {name: [None if value != value else value for value in each] for name, each in values.items()}
    reasons = _reasons(values, known)
    write_json(
        measures, {"values": numbers, "reasons": reasons, "object": known.object_of, "method": method, **trained.facts}
    )


def _triplets(images: Tensor, drawn: pd.DataFrame, known: Annotations) -> Triplets:
    anchors, positives, _, partners = (list(drawn[role]) for role in ROLES)
    found = [known.parts(paths, images.device) for paths in (anchors, positives, partners)]
    objects, sides = known.objects(anchors), known.longer_sides(positives)
    return Triplets(
        images,
        None if found[0] is None or found[1] is None or found[2] is None else (found[0], found[1], found[2]),
        None if objects is None else objects.to(images.device),
        None if sides is None else {alpha: alpha * sides.to(images.device) for alpha in ALPHAS},
    )


def _reasons(values: Mapping[str, Any], known: Annotations) -> dict[str, str]:
    """Why measures are not there."""
    reasons: dict[str, str] = {}
    if known.points is None:
        reasons |= dict.fromkeys(OF_PARTS, "the data set names no parts")
    elif not known.has_boxes:
        reasons |= dict.fromkeys(OF_PARTS[1:], "the data set has no boxes, which say how far off is near")
    if known.object_of is None:
        reasons["inside"] = "the data set has neither masks nor boxes"
    for name in OF_PARTS[1:]:
        if name not in values and name not in reasons:
            reasons[name] = "the method has no evidence from place to place"
    if "gap" not in values:
        reasons["gap"] = "the method has no sum"
    return reasons
