"""Miners: the choice of the tuples of a batch that a loss looks at.

A miner is called like one of pytorch-metric-learning, ``miner(embeddings, labels)``, and returns index tensors:
``(anchor, positive, negative)``, or ``(anchor, positive, anchor, negative)`` where a loss needs pairs that do not
belong together. Distances are Euclidean between unit vectors, so they lie in [0, 2].

Differs: an anchor without a positive or without a negative in the batch gets no tuple. The released code of DIML pairs
an anchor without a positive with itself, which its own batches never make necessary.
Differs: pytorch-metric-learning draws from the global generator, as many triplets per anchor as its class has
members; here draws can come from a generator of one's own, and the number per anchor is an argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lookalike.base.checks import require_keys, require_known
from lookalike.sampling.miners.pairs import MultiSimilarityMiner, NPairMiner
from lookalike.sampling.miners.triplets import (
    AllMiner,
    DistanceWeightedMiner,
    HardestClampedMiner,
    HardestMiner,
    RandomMiner,
    SemihardMiner,
    SofthardMiner,
    inverse_density,
)
from lookalike.sampling.miners.tuples import (
    Miner,
    Tuples,
    draw_columns,
    evenly,
    negative_pairs,
    positive_pairs,
    preferring,
    unit_distance,
)

__all__ = [
    "MINERS",
    "AllMiner",
    "DistanceWeightedMiner",
    "HardestClampedMiner",
    "HardestMiner",
    "Miner",
    "MultiSimilarityMiner",
    "NPairMiner",
    "RandomMiner",
    "SemihardMiner",
    "SofthardMiner",
    "Tuples",
    "build_miner",
    "draw_columns",
    "evenly",
    "inverse_density",
    "negative_pairs",
    "positive_pairs",
    "preferring",
    "unit_distance",
]

MINERS: dict[str, Callable[..., Miner]] = {
    "all": AllMiner,
    "random": RandomMiner,
    "semihard": SemihardMiner,
    "softhard": SofthardMiner,
    "distance_weighted": DistanceWeightedMiner,
    "hardest": HardestMiner,
    "hardest_clamped": HardestClampedMiner,
    "multi_similarity": MultiSimilarityMiner,
    "npair": NPairMiner,
}


def build_miner(name: str, parameters: Mapping[str, Any], *, generator: torch.Generator | None = None) -> Miner:
    """The miner of that name.

    Raises:
        ValueError: for an unknown name or parameter; the message lists the known ones.
    """
    require_known("miner", name, MINERS)
    known = inspect.signature(MINERS[name]).parameters.keys() - {"generator"}
    require_keys(f"miner {name!r}, parameter", parameters, known)
    return MINERS[name](**parameters, generator=generator)
