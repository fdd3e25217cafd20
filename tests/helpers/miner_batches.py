"""A batch of overlapping classes, and what miners draw from it."""

from __future__ import annotations

from collections import Counter

import torch

from lookalike.sampling.miners import build_miner

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])  # class 2 has one item
DRAWS = 400


def seeded(name: str, seed: int = 0, **parameters):
    return build_miner(name, parameters, generator=torch.Generator().manual_seed(seed))


def positives(a: int) -> set[int]:
    return {j for j in range(8) if j != a and LABELS[j] == LABELS[a]}


def negatives(a: int) -> set[int]:
    return {j for j in range(8) if LABELS[j] != LABELS[a]}


def drawn(name: str, embeddings, **parameters) -> Counter[tuple[int, int, int]]:
    """How often each triplet is drawn in many calls of one miner."""
    miner, counts = seeded(name, **parameters), Counter()
    for _ in range(DRAWS):
        counts.update(zip(*[part.tolist() for part in miner(embeddings, LABELS)], strict=True))
    return counts
