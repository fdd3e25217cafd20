"""The cells of one table: ours over seeds, the printed value, and their difference where both mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.plan.baselines import baselines
from lookalike.plan.origin import DEPARTURES
from lookalike.plan.published import ROW, printed_rows, printed_table, repeated_row
from lookalike.statistics.pairs import paired_difference

CELL = ["row", "label", "dataset", "stand_in", "metric"]
NUMBERS = ["mean", "std", "n", "seeds", "recipe", "queries", "published", "published_std", "difference"]
PRINTED = ["printed", "printed_std", "embedding_dim", "backbone", "setting"]
PAIR = ["against", "against_difference", "against_low", "against_high", "against_n"]
ORIGIN = ["departs", "rests_on", "query_in_r", "runs", "settings", "code", "mlflow", "rebuild", "trivial"]
COLUMNS = [*CELL, *NUMBERS, *PRINTED, *PAIR, *ORIGIN]
TERMS, COSTS = ["rates", "pooling", "embedding"], ["query_ms", "training_s"]  # of tables that show their terms
WARM = "warm_query_ms"  # in the place of the first cost, where all runs have it
COUNTS = ["n", "queries", "against_n"]
APART = "apart"  # of tables in which a run does not count all pictures: what it leaves out
TEXT = ["label", "dataset", "stand_in", "metric", "seeds", "recipe", *PRINTED, "against", *ORIGIN, *TERMS, APART]


def table_cells(table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per cell, printed rows in printed order, then rows of ours that no paper prints.

    Everything that the paper prints is there: also columns, data sets and rows that nothing is measured for.

    Args:
        table: the table's entry of ``params/tables``.
        runs: per run ``row``, ``recipe``, ``dataset``, ``published`` (data set it stands for), ``seed``,
            ``comparable`` (whether set-up and data are the published ones), ``queries``, ``code`` and ``metrics``
            (fractions by name), and what `lookalike.plan.origin.origin` says; of a table that shows its terms also
            `TERMS` and `COSTS`, and `WARM` if its stages have measured it; `APART` of runs that leave pictures out.

    Returns:
        The columns `COLUMNS`; `TERMS` and `COSTS` where the table asks for them, with `WARM` in the place of
        ``query_ms`` where all runs have it; and `APART` where a run has it. Numbers are in percent. ``std`` is
        empty for a single seed, ``difference`` where data set, backbone or setting are not the published ones.
        ``printed`` is text, digit by digit. ``against`` names the row that this one is compared with seed by seed.
        ``runs`` and what follows say where a number comes from, ``trivial`` that it belongs to a row beside which the
        others count.

    Raises:
        ValueError: if a row names a printed row, or a row to be held against, that does not exist.
    """
    values = _values(table, runs)
    ours = _over_seeds(values).merge(_pairs(table, values), how="left", on=[*_PLACE])
    rows, printed = _printed(table)
    cells = printed.merge(ours, how="outer", on=["entry", "dataset", "metric"], sort=False)
    labels = {entry: row["label"] for entry, row in enumerate(table["rows"])} | dict(
        zip(rows["entry"], rows["label"], strict=True)
    )
    places = dict(zip(rows["entry"], rows["row"], strict=True))
    cells["label"] = cells["entry"].map(labels)
    trivial = {entry for entry, row in enumerate(table["rows"]) if row.get("trivial", False)}
    cells["trivial"] = cells["entry"].isin(trivial).map({True: "yes", False: ""})
    cells["row"] = [places.get(entry, len(rows) + entry) for entry in cells["entry"]]
    comparable = cells.pop("comparable").eq(True)
    cells = cells.astype(dict.fromkeys(COUNTS, "Int64"))  # whole numbers also beside empty cells
    cells["difference"] = (cells["mean"] - cells["published"]).where(comparable)
    named = [] if table["datasets"] == "own" else table["datasets"]
    order = pd.DataFrame(
        {
            "dataset": cells["dataset"].map(_positions([*named, *cells["dataset"]])),
            "row": cells["row"],
            "metric": cells["metric"].map(_positions([*printed["metric"], *table["metrics"]])),
        }
    )
    cells = cells.loc[order.sort_values(["dataset", "row", "metric"], kind="stable").index]
    said = [APART] if cells[APART].fillna("").any() else []
    return cells[[*COLUMNS, *_asked(table, runs), *said]].reset_index(drop=True)


def write_cells(path: Path | str, cells: pd.DataFrame) -> None:
    """Write cells as CSV."""
    cells.to_csv(path, index=False, float_format="%.4f")


def read_cells(path: Path | str) -> pd.DataFrame:
    """Cells as `write_cells` wrote them; empty text, and columns that a file of older code lacks, are empty strings."""
    numbers = {name: [""] for name in [*COLUMNS, *COSTS, WARM] if name not in TEXT}  # of the rest "NA" is a name
    cells = pd.read_csv(path, dtype=dict.fromkeys(TEXT, str), keep_default_na=False, na_values=numbers)
    return cells.assign(**{name: "" for name in ORIGIN if name not in cells})


_PLACE = ("entry", "dataset", "stand_in", "metric")


def _asked(table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns that only tables of terms have. No column holds times that were measured in two ways."""
    warm = bool(runs) and all(run.get(WARM) is not None for run in runs)
    return [*TERMS, *([WARM, *COSTS[1:]] if warm else COSTS)] if table.get("terms") else []


def _values(table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per run and metric, in percent."""
    kept = ["recipe", "seed", "comparable", "queries", "departs", "rests_on", "query_in_r", "metrics_file", "settings"]
    kept += ["code", *_asked(table, runs)]
    values = [
        {"entry": run["row"], "dataset": run["published"] or run["dataset"], "stand_in": run["dataset"]}
        | {"metric": metric, "value": 100 * run["metrics"][metric], "options": run["options"], "mlflow": _tags(run)}
        | {name: run[name] for name in kept}
        | {APART: run.get(APART, "")}
        for run in runs
        for metric in table["metrics"]
        if metric in run["metrics"]
    ]
    frame = pd.DataFrame(values, columns=[*_PLACE, "value", "options", "mlflow", *kept, APART])
    return frame.astype({name: float for name in (*COSTS, WARM) if name in kept})


def _tags(run: Mapping[str, Any]) -> str:
    """What MLflow's own search finds the run by: its results are stored under the name of the recipe they share."""
    scale, _, recipe, dataset = Path(run["metrics_file"]).parts[-5:-1]
    wanted = {"scale": scale, "recipe": recipe, "dataset": dataset, "seed": run["seed"]}
    return " and ".join(f"tags.{name} = '{value}'" for name, value in wanted.items())


def _over_seeds(values: pd.DataFrame) -> pd.DataFrame:
    keys = [*_PLACE, "recipe", "comparable", "rests_on", "query_in_r", "settings", "options"]
    grouped = values.sort_values("seed", kind="stable").groupby(keys, sort=False, as_index=False)
    ours = grouped.agg(
        mean=("value", "mean"),
        std=("value", "std"),
        n=("value", "size"),
        seeds=("seed", lambda seeds: " ".join(str(seed) for seed in seeds)),
        queries=("queries", "min"),  # seeds of different splits, where they may stand together
        departs=("departs", _all_marks),
        code=("code", _different),
        apart=(APART, lambda texts: "; ".join(filter(None, dict.fromkeys(texts)))),
        files=("metrics_file", " ".join),
        mlflow=("mlflow", lambda tags: _any_seed(list(tags))),
        **{name: (name, "first") for name in TERMS if name in values},
        **{name: (name, "mean") for name in (*COSTS, WARM) if name in values},
    )
    ours["departs"] += ours["n"].eq(1).map({True: "1", False: ""})
    ours["query_in_r"] = ours["query_in_r"].map({True: "yes", False: "no"})
    ours["runs"] = ours["files"].str.replace(r"\S*?/([^/\s]+/[^/\s]+/seed\d+)\.json", r"\1", regex=True)
    ours["rebuild"] = "snakemake --cores all " + ours.pop("files") + ours.pop("options")
    return ours


def _all_marks(marks: Iterable[str]) -> str:
    """What marks any seed marks the cell."""
    found = set("".join(marks))
    return "".join(mark for mark in DEPARTURES if mark in found)


def _different(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(texts))


def _any_seed(tags: list[str]) -> str:
    """MLflow's search language has no OR: several seeds are found by what they share."""
    return tags[0] if len(tags) == 1 else tags[0].rpartition(" and ")[0]


def _pairs(table: Mapping[str, Any], values: pd.DataFrame) -> pd.DataFrame:
    """Per cell of a row that is held against another: their difference over the seeds that both have."""
    of_place = {key: group.set_index("seed")["value"] for key, group in values.groupby([*_PLACE], sort=False)}
    rows = list(_differences(table, of_place))
    return pd.DataFrame(rows, columns=[*_PLACE, *PAIR])


def _differences(
    table: Mapping[str, Any], of_place: Mapping[Any, pd.Series]
) -> Iterator[tuple[int, str, str, str, str, float, float, float, int]]:
    baselines_of = baselines(table)
    for (entry, *column), first in of_place.items():
        others = [(other, *column) for other in baselines_of.get(entry, [])]
        second = next((of_place[other] for other in others if other in of_place), None)
        seeds = [] if second is None else sorted(set(first.index) & set(second.index))
        if second is not None and seeds:
            difference = paired_difference(list(first[seeds]), list(second[seeds]))
            label = table["rows"][entry]["against"]
            dataset, stand_in, metric = column
            yield (
                entry,
                dataset,
                stand_in,
                metric,
                label,
                difference.mean,
                difference.low,
                difference.high,
                difference.n,
            )


def _printed(table: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Printed rows, each with its place, its label and our entry that repeats it (below zero for none); their numbers.

    Raises:
        ValueError: if an entry names a printed row that does not exist.
    """
    columns = ["entry", "dataset", "metric", "published", "published_std", *PRINTED]
    if "published" not in table:
        numbers = pd.DataFrame(columns=columns).astype({"entry": int, "published": float, "published_std": float})
        return pd.DataFrame(columns=["entry", "row", "label"]), numbers
    numbers = printed_table(**table["published"])
    printed = printed_rows(numbers)
    entry_of = {}
    for entry, values in enumerate(table["rows"]):
        if (wanted := values.get("published")) is not None:
            entry_of[repeated_row(printed, wanted, f"row {values['label']!r}")] = entry
    rows = pd.DataFrame(printed)
    rows["row"] = range(len(rows))
    # Printed rows that no recipe repeats get entries of their own below zero, so that they join with nothing.
    rows["entry"] = [entry_of.get(row, -1 - row) for row in rows["row"]]
    repeated = rows["method"].duplicated(keep=False)
    own_words = rows["method"].where(
        ~repeated, rows["method"] + " (" + rows["setting"] + ", " + rows["embedding_dim"] + ")"
    )
    rows["label"] = [
        table["rows"][entry]["label"] if entry >= 0 else words
        for entry, words in zip(rows["entry"], own_words, strict=True)
    ]
    merged = numbers.merge(rows, on=ROW).rename(columns={"value": "published", "std": "published_std"})
    return rows, merged[columns]


def _positions(names: Iterable[str]) -> dict[str, int]:
    """Place of each name where it stands first."""
    return {name: index for index, name in enumerate(dict.fromkeys(names))}
