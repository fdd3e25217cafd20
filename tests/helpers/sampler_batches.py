"""Classes of several sizes, and samplers of them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from lookalike.sampling.samplers import build_sampler

GROUPED = ["m_per_class", "balanced", "grouped", "cyclic", "hierarchical"]
# 12 classes of 5 to 16 rows, not sorted, with names that are no positions.
SIZES = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
LABELS = np.random.default_rng(0).permutation(np.repeat(100 + 10 * np.arange(12), SIZES))
COARSE = (LABELS // 10) % 2


def made(name: str, labels=LABELS, *, batch_size: int = 24, seed: int = 0, batches=None, coarse=None, **parameters):
    if name in GROUPED:
        parameters = {"per_class": 4, **parameters}
    if name == "hierarchical":
        coarse = COARSE if coarse is None else coarse
        parameters = {"half_batches": 20, **parameters}
    return build_sampler(
        name, parameters, labels=labels, batch_size=batch_size, coarse_labels=coarse, seed=seed, batches=batches
    )


def class_counts(batch: list[int], labels=LABELS) -> Counter[int]:
    return Counter(int(label) for label in np.asarray(labels)[batch])
