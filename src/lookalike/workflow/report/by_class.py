"""An evaluation's numbers of single classes, read without torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from lookalike.base.files import replacing
from lookalike.metrics.names import ON_TRAINING

GATHERED = ["R@1", "RP"]
SAME = {"P@1": "R@1", "rank1": "R@1"}  # of every query, whatever a paper calls it


def class_means(metrics: str, checkpoint: str, metric: str) -> pd.DataFrame | None:
    """Mean of a metric over the queries of each class, and their number.

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
    own = own if len(own) else kept  # the last epoch is the best one, and stands there once
    if name not in own or not len(own) or own[name].isna().any():
        return None
    return own.set_index("label")[[name, "queries"]].rename(columns={name: "value"})


def classes(models: Sequence[tuple[str, int]], *, metrics: Sequence[str], output: str) -> None:
    """Write the means over the queries of each class after the last epoch, of many models of a data set.

    Args:
        models: recipe and seed of each.
        metrics: JSON file of the evaluation of each.
        output: compressed CSV to write, with the columns ``recipe``, ``seed``, ``label``, ``queries`` and those of
            `GATHERED`, fractions; a model whose classes are not told apart has no rows.
    """
    rows = []
    for (recipe, seed), file in zip(models, metrics, strict=True):
        told = {metric: class_means(file, "last", metric) for metric in GATHERED}
        values = {metric: each["value"] for metric, each in told.items() if each is not None}
        if own := [each["queries"] for each in told.values() if each is not None]:
            rows.append(pd.DataFrame({"recipe": recipe, "seed": seed, "queries": own[0], **values}).reset_index())
    frame = pd.concat(rows) if rows else pd.DataFrame()
    with replacing(output) as path:
        frame.reindex(columns=["recipe", "seed", "label", "queries", *GATHERED]).to_csv(
            path,
            index=False,
            float_format="%.6g",
            compression="xz",  # of equal rows equal bytes, unlike gzip
        )


@cache
def _read(path: str) -> pd.DataFrame | None:
    return pd.read_csv(path) if Path(path).is_file() else None
