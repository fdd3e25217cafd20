"""What an evaluation wrote of single classes, read without torch."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from lookalike.metrics.names import ON_TRAINING

SAME = {"P@1": "R@1", "rank1": "R@1"}  # of every query, whatever a paper calls it


def class_means(metrics: str, checkpoint: str, metric: str) -> pd.DataFrame | None:
    """What the queries of each class reached.

    Args:
        metrics: JSON file of the evaluation; its classes lie beside it, as ``<name>.classes.csv``.
        checkpoint: ``best`` or ``last``.
        metric: name of a metric of `lookalike.metrics.search`, with `ON_TRAINING` before it for training pictures.

    Returns:
        Columns ``value`` (a fraction) and ``queries``, indexed by the class; ``None`` where classes are not told apart:
        for another metric, for mAP of a scoring that ranks only the first, and where there is no such file, as of
        attention and segmentation.
    """
    rows = _read(metrics.removesuffix(".json") + ".classes.csv")
    if rows is None:
        return None
    name = metric.removeprefix(ON_TRAINING)
    name = SAME.get(name, name)
    kept = rows[rows["pictures"] == ("train" if metric.startswith(ON_TRAINING) else "test")]
    own = kept[kept["checkpoint"] == checkpoint]
    own = own if len(own) else kept[kept["checkpoint"] == "best"]  # the last epoch is the best one
    if name not in own or not len(own) or own[name].isna().any():
        return None
    return own.set_index("label")[[name, "queries"]].rename(columns={name: "value"})


@cache
def _read(path: str) -> pd.DataFrame | None:
    return pd.read_csv(path) if Path(path).is_file() else None
