"""What metrics are called, in results, tables and recipes; told without importing torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Columns of `lookalike.metrics.definitions.metrics_of_queries` behind the rank of the first positive.
OF_QUERIES = ("RP", "MAP@R", "mAP")
# What mAP averages: precisions at positives, or with those just before them trapezoids below the line of precision over
# recall, as the evaluation of CUHK03-NP and Market-1501 does.
AVERAGE_PRECISIONS = ("hits", "trapezoids")
BETWEEN_EPOCHS = ("R@1", "P@1", *OF_QUERIES)
OF_LABELS = ("P@1", *OF_QUERIES, "rank1", "NMI")
ON_OBJECT = "on_object"  # of pictures with masks alone
OF_ATTENTION = ("coverage", "spread", ON_OBJECT)
OF_REGIONS = tuple(
    f"{ratio}_{part}"
    for ratio in ("mean_iou", "binary_iou")
    for part in ("mean", *(f"fold{fold}" for fold in range(4)))
)

# The epochs that are reported: the best one, and the last.
CHECKPOINTS = ("best", "last")
ON_TRAINING = "train_"  # before the name of a metric of the training pictures


def of_data_sets(specifications: Iterable[Mapping[str, Any]]) -> set[str]:
    """Names of all metrics of retrieval that data sets have: with their cut-offs and levels, on training pictures too.

    Args:
        specifications: contents of the data sets' files in ``params/datasets``.
    """
    names = {*OF_LABELS}
    for specification in specifications:
        names |= {f"R@{k}" for k in specification.get("recall_at", [1, 2, 4, 8])}
        names |= {f"mAP_{level}" for level in specification.get("levels", {})}
    return names | {f"{ON_TRAINING}{name}" for name in names}
