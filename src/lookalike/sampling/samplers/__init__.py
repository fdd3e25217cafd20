"""Samplers: the choice of the images that stand together in a batch.

Each sampler yields lists of row numbers and is given to ``DataLoader(batch_sampler=...)``. The batches of epoch e
depend on the seed and on e alone, whatever was drawn before: call ``set_epoch(e)`` before each epoch, also on resuming.
``batches`` cuts an epoch to that many, or lets it go on with another pass over the data.

A class with fewer images than are asked of it is drawn from with replacement, any other without, unless a sampler says
otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from lookalike.base.checks import require_keys, require_known
from lookalike.sampling.samplers.batches import BatchSampler, MPerClassSampler, PlainSampler, Rows
from lookalike.sampling.samplers.classes import (
    BalancedSampler,
    CyclicSampler,
    GroupedSampler,
    HierarchicalSampler,
    pair_in_turns,
)

__all__ = [
    "SAMPLERS",
    "BalancedSampler",
    "BatchSampler",
    "CyclicSampler",
    "GroupedSampler",
    "HierarchicalSampler",
    "MPerClassSampler",
    "PlainSampler",
    "Rows",
    "build_sampler",
    "pair_in_turns",
]

SAMPLERS: dict[str, Callable[..., BatchSampler]] = {
    "plain": PlainSampler,
    "m_per_class": MPerClassSampler,
    "balanced": BalancedSampler,
    "grouped": GroupedSampler,
    "cyclic": CyclicSampler,
    "hierarchical": HierarchicalSampler,
}


def build_sampler(
    name: str,
    parameters: Mapping[str, Any],
    *,
    labels: ArrayLike,
    batch_size: int,
    coarse_labels: ArrayLike | None = None,
    seed: int = 0,
    batches: int | None = None,
) -> BatchSampler:
    """The sampler of a recipe.

    Args:
        name: a key of :data:`SAMPLERS`.
        parameters: keyword arguments of that sampler; what is left out keeps its default.
        labels: class of each row.
        batch_size: rows per batch.
        coarse_labels: coarse class of each row, for the sampler that needs them.
        seed: seed of the random numbers.
        batches: batches per epoch, ``None`` for the sampler's own number.

    Raises:
        ValueError: for an unknown name or parameter, listing the known ones, for a parameter or for coarse labels that
            are missing, and whatever the sampler refuses.
    """
    require_known("sampler", name, SAMPLERS)
    arguments = inspect.signature(SAMPLERS[name]).parameters
    offered: dict[str, Any] = {"labels": labels, "batch_size": batch_size, "seed": seed, "batches": batches}
    if coarse_labels is not None and "coarse_labels" in arguments:
        offered["coarse_labels"] = coarse_labels
    known = arguments.keys() - offered.keys() - {"coarse_labels"}
    require_keys(f"sampler {name!r}, parameter", parameters, known)
    given = {**offered, **parameters}
    missing = [key for key, argument in arguments.items() if argument.default is argument.empty and key not in given]
    if missing:
        raise ValueError(f"sampler {name!r} needs {', '.join(missing)}")
    return SAMPLERS[name](**given)
