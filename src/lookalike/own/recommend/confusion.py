"""Which classes are taken for each other: by the first picture that each held-out picture finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from lookalike.files import read_tensors, unpacked_names
from lookalike.metrics.search import FirstMatches, Search
from lookalike.stages.evaluate import representation, search_of, searching_roles
from lookalike.training.evaluation import READ_THE_MODEL, SCORINGS
from lookalike.training.learner import named
from lookalike.training.model_file import load_model

MOST = 5  # pairs that are told


@dataclass(frozen=True)
class Pair:
    """Two classes that are taken for each other.

    Attributes:
        classes: their names.
        wrong: queries of either whose first match is of the other.
        queries: of both.
        query: path of such a query, below the folder.
        match: path of what it found.
    """

    classes: tuple[str, str]
    wrong: int
    queries: int
    query: str
    match: str


@torch.no_grad()
def confused(settings: Mapping[str, Any], model: Path, embeddings: Path, *, most: int = MOST) -> list[Pair]:
    """The pairs of classes that are most often taken for each other.

    Args:
        settings: the recipe's section ``evaluate``.
        model: file of the training.
        embeddings: of its pictures, as the stage ``embed`` wrote them.
        most: pairs.

    Returns:
        Pairs with most wrong first matches first; those with equally many by name.
    """
    tensors, about = read_tensors(embeddings)
    checkpoint = "best" if about["best_epoch"] == about["epochs"] else "last"
    query, gallery = searching_roles(tensors)
    whole = search_of(settings, tensors, query, gallery, [1], {})
    search = FirstMatches(**{each.name: getattr(whole, each.name) for each in fields(Search)}, count=1)
    name, options = named(settings["scoring"])
    network = load_model(model, checkpoint)[0] if name in READ_THE_MODEL else None
    sides = [representation(tensors, checkpoint, role) for role in (query, gallery)]
    SCORINGS[name](network, *sides, search, **options)
    first = search.found[0][0][:, 0].tolist()
    paths = {role: unpacked_names(tensors[f"names/{role}"]) for role in {query, gallery}}
    return pairs_of(paths[query], [paths[gallery][place] for place in first], most=most)


def pairs_of(queries: list[str], found: list[str], *, most: int = MOST) -> list[Pair]:
    """As `confused`, of the paths of queries and of what each has found; a picture's folder is its class."""
    wrong: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for query, match in zip(queries, found, strict=True):
        first, second = (PurePosixPath(path).parent.name for path in (query, match))
        sizes[first] += 1
        if first != second:
            wrong[min(first, second), max(first, second)].append((query, match))
    ordered = sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        Pair(classes, len(cases), sum(sizes[name] for name in classes), *cases[0]) for classes, cases in ordered[:most]
    ]
