"""Find pictures that a trained model takes for alike, and explain them, for a page on which people look at them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.base.files import json_text, read_tensors, unpacked_names, write_text
from lookalike.explanations.choice import explain
from lookalike.explanations.serialisation import Data, as_data, maps_of_nodes
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.scoring import ordered_by
from lookalike.metrics.names import REPORTED
from lookalike.metrics.search import FirstMatches
from lookalike.workflow.data.roles import UNLABELLED
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.recipes import Evaluate, View
from lookalike.workflow.stages.evaluate import representation, searching_roles, with_unlabelled
from lookalike.workflow.training.evaluation import NEED_ALL, SCORINGS
from lookalike.workflow.training.images import Images, batches
from lookalike.workflow.training.model_file import load_model


def pairs(
    settings: Evaluate,
    *,
    method: Mapping[str, Any],
    drawn: Mapping[str, int],
    model: str,
    embeddings: str,
    root: str,
    pairs: str,
    workers: int = 0,
) -> None:
    """Write the first matches of some queries, as the recipe's scoring ranks them, each with its explanation.

    Args:
        settings: the recipe's ``evaluate`` section.
        method: ``name`` of `lookalike.explain`, ``None`` for the model's own, and its options.
        drawn: ``seed``, ``queries`` and ``matches`` of ``params/page.yaml``.
        pairs: JSON to write: the ``method`` that explains, the ``view`` of the pictures, and of each query its
            ``picture``, its ``label`` and ``matches``, as `lookalike.explanations.serialisation.as_data` with
            ``picture``, ``label``, ``right`` and ``score``: ``None`` for a scoring that ranks without one, a distance
            for one that ranks by distance.

    Raises:
        ValueError: for embeddings without pictures that can be searched, or a method that does not explain the model.
    """
    device = job_device()
    tensors, _ = read_tensors(embeddings)
    query, gallery = searching_roles(tensors)
    if f"labels/{gallery}" not in tensors:
        raise ValueError(f"{embeddings} holds no {gallery} pictures with labels, among which matches are looked for")
    names = {role: unpacked_names(tensors[f"names/{role}"]) for role in dict.fromkeys((query, gallery))}
    if f"names/{UNLABELLED}" in tensors:
        names[gallery] = names[gallery] + unpacked_names(tensors[f"names/{UNLABELLED}"])
    tensors = {name: tensor.to(device) for name, tensor in tensors.items() if not name.startswith("names/")}
    labels = tensors[f"labels/{query}"].cpu()  # without the unlabelled, which are no queries
    tensors = with_unlabelled(tensors, gallery)
    network, trained = load_model(model, REPORTED)
    network.to(device).to(memory_format=torch.channels_last)
    queries = drawn_queries(names[query][: len(labels)], labels, drawn["queries"], drawn["seed"])
    places, scores = first_matches(settings, network, tensors, queries, drawn["matches"])
    view = trained.settings.test_image
    found: dict[str, Any] = {"view": view.dump(), "queries": []}
    for row, asked in enumerate(queries):
        ranked = scores[row] != -torch.inf  # where there is junk there may be fewer
        kept = places[row][ranked]
        paths = [Path(root) / names[query][asked], *(Path(root) / names[gallery][place] for place in kept.tolist())]
        images = _images(paths, view, device, workers)
        found["method"], shown = explained(network, images, method) if len(kept) else (found.get("method", ""), [])
        numbers = tensors[f"labels/{gallery}"][kept].tolist()
        of_query = int(labels[asked])
        matches = [
            {"picture": names[gallery][place], "label": label, "right": label == of_query, **each}
            | {"score": None if math.isnan(score) else round(abs(score) if each["measure"] == "distance" else score, 4)}
            for place, label, score, each in zip(
                kept.tolist(), numbers, scores[row][ranked].tolist(), shown, strict=True
            )
        ]
        found["queries"].append({"picture": names[query][asked], "label": of_query, "matches": matches})
        print(f"{row + 1} of {len(queries)} queries", flush=True)
    write_text(pairs, json_text(found, where=pairs, sort_keys=True) + "\n")  # in one line: maps are long lists


def drawn_queries(names: Sequence[str], labels: Tensor, count: int, seed: int) -> list[int]:
    """Some pictures, from as many classes as possible, whatever their order is.

    Args:
        names: of N pictures.
        labels: ``(N,)`` int64.
        count: how many; all of them where there are fewer.
        seed: of the draw.

    Returns:
        Their places, sorted by name.
    """
    ordered = sorted(range(len(names)), key=names.__getitem__)
    shuffled = [ordered[place] for place in torch.randperm(len(ordered), generator=torch.Generator().manual_seed(seed))]
    seen: dict[int, int] = {}
    turns = []
    for place in shuffled:
        label = int(labels[place])
        seen[label] = turn = seen.get(label, 0) + 1
        turns.append((turn, place))
    chosen = [place for _, place in sorted(turns, key=lambda each: each[0])[:count]]
    return sorted(chosen, key=names.__getitem__)


@torch.no_grad()
def first_matches(
    settings: Evaluate, network: nn.Module, tensors: Mapping[str, Tensor], queries: Sequence[int], count: int
) -> tuple[Tensor, Tensor]:
    """The items that a scoring puts first.

    Args:
        settings: the recipe's ``evaluate`` section.
        network: on the device of the tensors.
        tensors: what the ``embed`` stage wrote, the unlabelled pictures in the gallery.
        queries: Q places among those of the role that searches.
        count: items of each query.

    Returns:
        Places ``(Q, count)`` in the gallery, the query itself never among them, and scores, NaN where there are none.
        Of structural matching these are what its candidates are ordered by.
    """
    query, gallery = searching_roles(tensors)
    name, options = settings.scoring.name, settings.scoring.options
    sides = [representation(tensors, REPORTED, role) for role in (query, gallery)]
    labels = [tensors[f"labels/{role}"] for role in (query, gallery)]
    cameras = [tensors.get(f"cameras/{role}") for role in (query, gallery)]
    alone = query == gallery
    rows = torch.as_tensor(queries, device=labels[0].device)
    chosen = torch.arange(len(labels[0]), device=rows.device) if name in NEED_ALL else rows
    search = FirstMatches(
        labels[0][chosen],
        labels[1],
        (),
        self_match=alone and name in NEED_ALL,
        query_cameras=None if cameras[0] is None else cameras[0][chosen],
        gallery_cameras=cameras[1],
        count=min(count + 1, len(labels[1])),  # one more, as a query may find itself
    )
    SCORINGS[name](network, {key: each[chosen] for key, each in sides[0].items()}, sides[1], search, **options)
    places, scores = search.found[0]
    if name in NEED_ALL:
        places, scores = places[rows], scores[rows]
    if name == "structural_matching":
        scores = ordered_by({key: each[rows] for key, each in sides[0].items()}, sides[1], places, **options)
    itself = places == rows[:, None] if alone else torch.zeros_like(places, dtype=torch.bool)
    order = itself.int().argsort(dim=1, stable=True)[:, : min(count, len(labels[1]) - alone)]
    return places.gather(1, order).cpu(), scores.gather(1, order).double().cpu()


def explained(network: nn.Module, images: Tensor, method: Mapping[str, Any]) -> tuple[str, list[Data]]:
    """The method that explains a query ``images[0]`` beside each of the others, and the data shown of each pair."""
    options = {key: value for key, value in method.items() if key != "name"}
    others = images[1:]
    asked = images[:1].expand(len(others), -1, -1, -1)
    explanation = explain(network, asked, others, method=method["name"], **options)
    maps = [each.cpu() for each in maps_of_nodes(network, images)] if isinstance(network, AVSL) else []
    return explanation.method, [
        as_data(explanation, row, [(level[0], level[row + 1]) for level in maps]) for row in range(len(others))
    ]


def _images(paths: Sequence[Path], view: View, device: torch.device, workers: int) -> Tensor:
    every = [list(range(len(paths)))]
    [(images, _)] = batches(Images(paths, view), every, seed=0, device=device, workers=workers)
    return images
