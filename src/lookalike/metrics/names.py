"""Names of the metrics in results, tables and recipes, without importing torch."""

from __future__ import annotations

from collections.abc import Iterable

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

USUAL_CUT_OFFS = (1, 2, 4, 8)  # of Recall@k, on data sets that name none
AT_CUT_OFFS = "R@k"  # in a table: at all cut-offs of its data sets

# The epochs that are kept: the last, which nothing has chosen and all results are of, and that with the best R@1 on the
# test classes, which the papers report and their tables show beside it.
REPORTED, BEST = CHECKPOINTS = ("last", "best")
ON_TRAINING = "train_"  # before the name of a metric of the training pictures


def of_data_sets(cut_offs: Iterable[int], levels: Iterable[str]) -> set[str]:
    """Names of all metrics of retrieval that data sets have, on training pictures too.

    Args:
        cut_offs: of Recall@k on any of them.
        levels: of coarser labels on any of them.
    """
    names = {*OF_LABELS, *(f"R@{k}" for k in cut_offs), *(f"mAP_{level}" for level in levels)}
    return names | {f"{ON_TRAINING}{name}" for name in names}


def of_table(metrics: Iterable[str], cut_offs: Iterable[int]) -> list[str]:
    """Names of the metrics of a table, in their order, with the cut-offs of its data sets in place of `AT_CUT_OFFS`.

    Args:
        metrics: as its entry names them.
        cut_offs: of Recall@k on any of its data sets.
    """
    recalls = [f"R@{k}" for k in sorted(set(cut_offs))]
    return [name for metric in metrics for name in (recalls if metric == AT_CUT_OFFS else [metric])]
