"""The cells of one table: ours over seeds, the printed value, and their difference where both mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from lookalike.tables.published import ROW, matches, printed_table

CELL = ["row", "label", "dataset", "stand_in", "metric"]


def table_cells(table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per cell, printed rows in printed order, then rows of ours that no paper prints.

    Args:
        table: the table's entry of ``params/tables``.
        runs: per run ``row``, ``recipe``, ``dataset``, ``published`` (data set it stands for), ``seed``,
            ``comparable`` (whether set-up and data are the published ones), ``queries`` and ``metrics`` (fractions by
            name).

    Returns:
        Columns ``row, label, dataset, stand_in, metric, mean, std, n, seeds, recipe, queries, published,
        published_std, difference``; numbers in percent. ``std`` is empty for a single seed, ``difference`` where data
        set, backbone or setting are not the published ones.

    Raises:
        ValueError: if a row names a printed row that does not exist.
    """
    ours = _over_seeds(table, runs)
    printed = _printed(table)
    cells = printed.merge(ours, how="outer", on=["entry", "dataset", "metric"], sort=False)
    cells["label"] = cells["label_x"].fillna(cells["label_y"])
    cells["row"] = cells["row"].fillna(len(printed) + cells["entry"])
    comparable = cells.pop("comparable").fillna(False).astype(bool)
    cells["difference"] = (cells["mean"] - cells["published"]).where(comparable)
    order = {metric: place for place, metric in enumerate(table["metrics"])}
    places = pd.DataFrame({"row": cells["row"], "metric": cells["metric"].map(order)})
    places["dataset"] = cells["dataset"].map({name: place for place, name in enumerate(_datasets(table, cells))})
    cells = cells.loc[places.sort_values(["dataset", "row", "metric"], kind="stable").index]
    columns = [*CELL, "mean", "std", "n", "seeds", "recipe", "queries", "published", "published_std", "difference"]
    return cells[columns].reset_index(drop=True)


def _over_seeds(table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    values = [
        {"entry": run["row"], "label": table["rows"][run["row"]]["label"], "recipe": run["recipe"], "seed": run["seed"]}
        | {"dataset": run["published"] or run["dataset"], "stand_in": run["dataset"], "comparable": run["comparable"]}
        | {"queries": run["queries"], "metric": metric, "value": 100 * run["metrics"][metric]}
        for run in runs
        for metric in table["metrics"]
        if metric in run["metrics"]
    ]
    columns = ["entry", "label", "recipe", "seed", "dataset", "stand_in", "comparable", "queries", "metric", "value"]
    frame = pd.DataFrame(values, columns=columns)
    keys = ["entry", "label", "recipe", "dataset", "stand_in", "comparable", "queries", "metric"]
    grouped = frame.groupby(keys, sort=False, as_index=False)
    return grouped.agg(
        mean=("value", "mean"),
        std=("value", "std"),
        n=("value", "size"),
        seeds=("seed", lambda seeds: " ".join(str(seed) for seed in sorted(seeds))),
    )


def _printed(table: Mapping[str, Any]) -> pd.DataFrame:
    """Printed numbers with the place of their row, and the entry of ours that repeats it (-1 for none)."""
    columns = ["entry", "row", "label", "dataset", "metric", "published", "published_std"]
    if "published" not in table:
        return pd.DataFrame(columns=columns).astype({"entry": int, "published": float, "published_std": float})
    numbers = printed_table(table["published"]["paper"], table["published"]["table"])
    rows = numbers[ROW].drop_duplicates().reset_index(drop=True)
    entry_of = {}
    for entry, values in enumerate(table["rows"]):
        if (wanted := values.get("published")) is not None:
            found = [row.Index for row in rows.itertuples() if matches(row, wanted)]
            if len(found) != 1:
                raise ValueError(f"row {values['label']!r} names {wanted}: {len(found)} printed rows are that, not one")
            entry_of[found[0]] = entry
    rows["row"] = range(len(rows))
    # Printed rows that no recipe repeats get entries of their own below zero, so that they join with nothing.
    rows["entry"] = [entry_of.get(place, -1 - place) for place in rows["row"]]
    repeated = rows["method"].duplicated(keep=False)
    own_words = rows["method"].where(
        ~repeated, rows["method"] + " (" + rows["setting"] + ", " + rows["embedding_dim"] + ")"
    )
    rows["label"] = [
        table["rows"][entry]["label"] if entry >= 0 else words
        for entry, words in zip(rows["entry"], own_words, strict=True)
    ]
    wanted_metrics = numbers[numbers["metric"].isin(table["metrics"]) & numbers["dataset"].isin(table["datasets"])]
    merged = wanted_metrics.merge(rows, on=ROW)
    return merged.rename(columns={"value": "published", "std": "published_std"})[columns]


def _datasets(table: Mapping[str, Any], cells: pd.DataFrame) -> list[str]:
    return list(cells["dataset"].unique()) if table["datasets"] == "own" else list(table["datasets"])
