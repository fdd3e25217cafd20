"""Draw the triplets on which all explanations of a data set are measured."""

from __future__ import annotations

import pandas as pd
import torch

from lookalike.base.files import read_tensors, replacing, unpacked_names
from lookalike.explanations.quality.protocol import nearest_triplets, random_partners
from lookalike.metrics.names import REPORTED

ROLE = "test"  # whose pictures search each other
ROLES = ("anchor", "positive", "negative", "partner")


def triplets(*, embeddings: str, wanted: int, seed: int, drawn: str) -> None:
    """Write anchors, each with its nearest picture of its class, its nearest of another, and a random partner.

    Args:
        embeddings: safetensors of the neutral model.
        wanted: how many; fewer where fewer pictures can be anchors.
        seed: of the draw.
        drawn: CSV to write: ``anchor, positive, negative, partner``, paths of pictures below their data set's folder.

    Raises:
        ValueError: for embeddings without a test set that searches itself, or pictures that make no triplet.
    """
    tensors, _ = read_tensors(embeddings)
    name = f"{REPORTED}/{ROLE}/embedding"
    if name not in tensors:
        found = ", ".join(sorted(tensors))
        raise ValueError(f"{embeddings} holds no {name}, from which triplets are drawn; it holds {found}")
    rows = nearest_triplets(tensors[name].float(), tensors[f"labels/{ROLE}"], wanted, seed)
    names = unpacked_names(tensors[f"names/{ROLE}"])
    columns = torch.cat([rows, random_partners(rows, len(names), seed)[None]])
    frame = pd.DataFrame(
        {role: [names[row] for row in column.tolist()] for role, column in zip(ROLES, columns, strict=True)}
    )
    with replacing(drawn) as path:
        frame.to_csv(path, index=False, lineterminator="\n")
