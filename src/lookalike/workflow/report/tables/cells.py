"""The cells of one table: ours over seeds, the printed value, and their difference where both mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.workflow.plan.origin import DEPARTURES
from lookalike.workflow.plan.published import ROW, printed_rows, printed_table, repeated_row
from lookalike.workflow.report.by_class import SAME
from lookalike.workflow.report.statistics.pairs import of_halves, paired_difference
from lookalike.workflow.settings.tables import PlannedTable, PrintedPoint

CELL = ["row", "label", "dataset", "stand_in", "metric"]
NUMBERS = ["mean", "std", "n", "seeds", "recipe", "queries", "published", "published_std", "difference"]
PRINTED = ["printed", "printed_std", "embedding_dim", "backbone", "setting"]
PAIR = ["against", "against_difference", "against_low", "against_high", "against_n"]
ORIGIN = ["of_seeds", "departs", "rests_on", "query_in_r", "runs", "settings", "code", "mlflow", "rebuild", "trivial"]
COLUMNS = [*CELL, *NUMBERS, *PRINTED, *PAIR, *ORIGIN]
TERMS, COSTS = ["rates", "pooling", "embedding"], ["query_ms", "training_s"]  # of tables that show their terms
WARM = "warm_query_ms"  # in the place of the first cost, where all runs have it
BESIDE = ("best", "selected")  # of a table with another epoch than the last: the mean at that one
COUNTS = ["n", "queries", "against_n"]
APART = "apart"  # of tables in which a run does not count all pictures: what it leaves out
TEXT = ["label", "dataset", "stand_in", "metric", "seeds", "recipe", *PRINTED, "against", *ORIGIN, *TERMS, APART]


@dataclass(frozen=True)
class Run:
    """A run behind a table with its metrics, settings and costs.

    Attributes:
        row: place of its row in the table.
        recipe: name of its recipe.
        dataset: data set of the scale.
        published: the one that it stands for, empty for own pictures.
        seed: of the run.
        comparable: whether set-up and data are the published ones.
        metrics: fractions by name, of the last epoch.
        queries: number of them.
        code: digest of what trained it, empty where the metrics do not say.
        metrics_file: that the metrics stand in.
        settings: as all up to ``options`` what `lookalike.workflow.plan.origin.origin` says.
        rates: as ``pooling`` and ``embedding`` its terms, of a table that shows them.
        query_ms: as all that follow what it has cost, ``None`` where nobody has measured it.
        apart: what it does not count of its data set.
        beside: as ``metrics`` of the epoch that stands beside the last, where one does.
        half: of the classes of its data set, that it trains on.
    """

    row: int
    recipe: str
    dataset: str
    published: str
    seed: int
    comparable: bool
    metrics: Mapping[str, float]
    queries: int
    code: str
    metrics_file: str
    settings: str
    departs: str
    rests_on: str
    query_in_r: bool
    options: str
    rates: str = ""
    pooling: str = ""
    embedding: str = ""
    query_ms: float | None = None
    warm_query_ms: float | None = None
    training_s: float | None = None
    apart: str = ""
    beside: Mapping[str, float] = field(default_factory=dict)
    half: str = ""


def table_cells(table: PlannedTable, runs: Sequence[Run]) -> pd.DataFrame:
    """One row per cell, printed rows in printed order, then rows of ours that no paper prints.

    Everything that the paper prints is there: also columns, data sets and rows that nothing is measured for.

    Args:
        table: the table.
        runs: the runs behind it.

    Returns:
        The columns `COLUMNS`; `TERMS` and `COSTS` where the table asks for them, with `WARM` in the place of
        ``query_ms`` where all runs have it; one of `BESIDE` where the table has such an epoch; and `APART` where a run
        has it. Numbers are in percent. ``std`` is empty for a single seed, ``difference`` where data set, backbone or
        setting are not the published ones.
        ``of_seeds`` is what each of several seeds gave, in their order.
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
    labels = {entry: row.label for entry, row in enumerate(table.rows)} | dict(
        zip(rows["entry"], rows["label"], strict=True)
    )
    places = dict(zip(rows["entry"], rows["row"], strict=True))
    cells["label"] = cells["entry"].map(labels)
    trivial = {entry for entry, row in enumerate(table.rows) if row.trivial}
    cells["trivial"] = cells["entry"].isin(trivial).map({True: "yes", False: ""})
    cells["row"] = [places.get(entry, len(rows) + entry) for entry in cells["entry"]]
    comparable = cells.pop("comparable").eq(True)
    cells = cells.astype(dict.fromkeys(COUNTS, "Int64"))  # whole numbers also beside empty cells
    cells = cells.rename(columns={"beside": table.beside or "beside"})
    at_print = cells[table.beside].fillna(cells["mean"]) if table.beside else cells["mean"]
    cells["difference"] = (at_print - cells["published"]).where(comparable)
    order = pd.DataFrame(
        {
            "dataset": cells["dataset"].map(_positions([*table.named_datasets, *cells["dataset"]])),
            "row": cells["row"],
            "metric": cells["metric"].map(_positions([*(printed["metric"] if len(rows) else ()), *table.metrics])),
        }
    )
    cells = cells.loc[order.sort_values(["dataset", "row", "metric"], kind="stable").index]
    said = [name for name in (table.beside, APART) if name and (cells[name].notna() & (cells[name] != "")).any()]
    return cells[[*COLUMNS, *_asked(table, runs), *said]].reset_index(drop=True)


def write_cells(path: Path | str, cells: pd.DataFrame) -> None:
    """Write cells as CSV."""
    cells.to_csv(path, index=False, float_format="%.4f")


def read_cells(path: Path | str) -> pd.DataFrame:
    """Cells as `write_cells` wrote them; empty text, and columns that a file of older code lacks, are empty strings."""
    # Of the rest "NA" is a name.
    numbers = {name: [""] for name in [*COLUMNS, *COSTS, WARM, *BESIDE] if name not in TEXT}
    cells = pd.read_csv(path, dtype=dict.fromkeys(TEXT, str), keep_default_na=False, na_values=numbers)
    return cells.assign(**{name: "" for name in ORIGIN if name not in cells})


_PLACE = ("entry", "dataset", "stand_in", "metric")


def _asked(table: PlannedTable, runs: Sequence[Run]) -> list[str]:
    """Columns that only tables of terms have. No column holds times that were measured in two ways."""
    warm = bool(runs) and all(run.warm_query_ms is not None for run in runs)
    return [*TERMS, *([WARM, *COSTS[1:]] if warm else COSTS)] if table.terms else []


def _values(table: PlannedTable, runs: Sequence[Run]) -> pd.DataFrame:
    """One row per run and metric, in percent."""
    kept = ["recipe", "seed", "comparable", "queries", "departs", "rests_on", "query_in_r", "metrics_file", "settings"]
    kept += ["code", "options", APART, "half", *_asked(table, runs)]
    values = [
        {"entry": run.row, "dataset": run.published or run.dataset, "stand_in": run.dataset, "metric": metric}
        | {"value": 100 * run.metrics[metric], "beside": 100 * run.beside.get(metric, nan), "mlflow": _tags(run)}
        | {name: getattr(run, name) for name in kept}
        for run in runs
        for metric in table.metrics
        if metric in run.metrics
    ]
    frame = pd.DataFrame(values, columns=[*_PLACE, "value", "beside", "mlflow", *kept])
    # A cut-off beyond the pictures of one half has no mean of both.
    halves, of_row = (frame.groupby(list(place))["half"].transform("nunique") for place in (_PLACE, _PLACE[:3]))
    return frame[halves == of_row].astype({name: float for name in (*COSTS, WARM) if name in kept})


def _tags(run: Run) -> str:
    """Query that finds the run in MLflow: its results are stored under the name of the recipe they share."""
    scale, _, recipe, dataset = Path(run.metrics_file).parts[-5:-1]
    wanted = {"scale": scale, "recipe": recipe, "dataset": dataset, "seed": run.seed}
    return " and ".join(f"tags.{name} = '{value}'" for name, value in wanted.items())


def _over_seeds(values: pd.DataFrame) -> pd.DataFrame:
    keys = [*_PLACE, "recipe", "comparable", "rests_on", "query_in_r", "options"]
    grouped = values.sort_values("seed", kind="stable").groupby(keys, sort=False, as_index=False)
    ours = grouped.agg(
        n=("value", "size"),
        seeds=("seed", lambda seeds: " ".join(str(seed) for seed in seeds)),
        of_seeds=("value", lambda values: " ".join(f"{value:.2f}" for value in values) if len(values) > 1 else ""),
        queries=("queries", "min"),  # seeds of different splits, where they may stand together
        departs=("departs", _all_marks),
        code=("code", _different),
        settings=("settings", _different),
        apart=(APART, lambda texts: "; ".join(filter(None, dict.fromkeys(texts)))),
        files=("metrics_file", " ".join),
        mlflow=("mlflow", lambda tags: _any_seed(list(tags))),
        **{name: (name, lambda texts: "; ".join(dict.fromkeys(texts))) for name in TERMS if name in values},
        **{name: (name, "mean") for name in (*COSTS, WARM) if name in values},
    )
    parts = [each for _, each in grouped]
    told = [of_halves(list(each["value"]), list(each["half"])) for each in parts]
    ours["mean"], ours["std"] = [mean for mean, _ in told], [deviation for _, deviation in told]
    ours["beside"] = [of_halves(list(each["beside"]), list(each["half"]))[0] for each in parts]
    ours["departs"] += ours["n"].eq(1).map({True: "1", False: ""})
    ours["query_in_r"] = ours["query_in_r"].map({True: "yes", False: "no"})
    ours["runs"] = ours["files"].str.replace(r"\S*?/([^/\s]+/[^/\s]+/seed\d+)\.json", r"\1", regex=True)
    ours["rebuild"] = "snakemake --cores all " + ours.pop("files") + ours.pop("options")
    return ours


def _all_marks(marks: Iterable[str]) -> str:
    """Marks of a cell: those of any of its seeds."""
    found = set("".join(marks))
    return "".join(mark for mark in DEPARTURES if mark in found)


def _different(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(texts))


def _any_seed(tags: list[str]) -> str:
    """MLflow's search language has no OR: several seeds are found by the tags they share."""
    return tags[0] if len(tags) == 1 else tags[0].rpartition(" and ")[0]


def _pairs(table: PlannedTable, values: pd.DataFrame) -> pd.DataFrame:
    """Per cell of a row that is held against another: their difference over the seeds that both have."""
    of_place = {key: group.set_index("seed")[["value", "half"]] for key, group in values.groupby([*_PLACE], sort=False)}
    rows = list(_differences(table, of_place))
    return pd.DataFrame(rows, columns=[*_PLACE, *PAIR])


def _differences(
    table: PlannedTable, of_place: Mapping[Any, pd.DataFrame]
) -> Iterator[tuple[int, str, str, str, str, float, float, float, int]]:
    baselines_of = baselines(table)
    for (entry, *column), first in of_place.items():
        others = [(other, *column) for other in baselines_of.get(entry, [])]
        second = next((of_place[other] for other in others if other in of_place), None)
        seeds = [] if second is None else sorted(set(first.index) & set(second.index))
        if second is not None and seeds:
            ours, theirs = (list(each.loc[seeds, "value"]) for each in (first, second))
            difference = paired_difference(ours, theirs, list(first.loc[seeds, "half"]))
            label = table.rows[entry].against
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


def baselines(table: PlannedTable) -> dict[int, list[int]]:
    """Rows of a table that are held against another of its rows, by their places.

    A row may stand several times, each time for other data sets; so may its baseline.

    Raises:
        ValueError: if ``against`` is not the label of another row.
    """
    labels = [row.label for row in table.rows]
    compared = {}
    for number, row in enumerate(table.rows):
        if row.against:
            compared[number] = [other for other, label in enumerate(labels) if label == row.against]
            if not compared[number] or row.against == row.label:
                others = ", ".join(dict.fromkeys(label for label in labels if label != row.label))
                raise ValueError(
                    f"table {table.title!r}, row {row.label!r}, against: {row.against!r} is no other row; "
                    f"other rows: {others}"
                )
    return compared


def _printed(table: PlannedTable) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Printed rows, each with its place, its label and our entry that repeats it (below zero for none); their numbers.

    Raises:
        ValueError: if an entry names a printed row that does not exist.
    """
    columns = ["entry", "dataset", "metric", "published", "published_std", *PRINTED]
    if table.published is None:
        numbers = pd.DataFrame(columns=columns).astype({"entry": int, "published": float, "published_std": float})
        parts = [
            _of_point(point, table, dataset).assign(entry=entry)[columns]
            for entry, row in enumerate(table.rows)
            for dataset, point in row.prints.items()
        ]
        return pd.DataFrame(columns=["entry", "row", "label"]), pd.concat(parts) if parts else numbers
    numbers = printed_table(**table.published.dump())
    printed = printed_rows(numbers)
    entry_of = {}
    for entry, row in enumerate(table.rows):
        if row.published:
            entry_of[repeated_row(printed, row.published, f"row {row.label!r}")] = entry
    rows = pd.DataFrame(printed)
    rows["row"] = range(len(rows))
    # Printed rows that no recipe repeats get entries of their own below zero, so that they join with nothing.
    rows["entry"] = [entry_of.get(place, -1 - place) for place in rows["row"]]
    repeated = rows["method"].duplicated(keep=False)
    own_words = rows["method"].where(
        ~repeated, rows["method"] + " (" + rows["setting"] + ", " + rows["embedding_dim"] + ")"
    )
    rows["label"] = [
        table.rows[entry].label if entry >= 0 else words for entry, words in zip(rows["entry"], own_words, strict=True)
    ]
    merged = numbers.merge(rows, on=ROW).rename(columns={"value": "published", "std": "published_std"})
    return rows, merged[columns]


def _of_point(point: PrintedPoint, table: PlannedTable, dataset: str) -> pd.DataFrame:
    """The numbers of a printed row on a data set, those of the table's metrics."""
    numbers = printed_table(**point.table.dump())
    lines = printed_rows(numbers)
    line = lines[repeated_row(lines, point.row, f"table {table.title!r}")]
    of_row = (numbers[ROW] == pd.Series(line._asdict())).all(axis=1) & (numbers["dataset"] == dataset)
    named = numbers["metric"].where(numbers["metric"].isin(table.metrics), numbers["metric"].replace(SAME))
    found = numbers.assign(metric=named)[of_row & named.isin(table.metrics)]
    return found.rename(columns={"value": "published", "std": "published_std"})


def _positions(names: Iterable[str]) -> dict[str, int]:
    """Place of each name where it stands first."""
    return {name: index for index, name in enumerate(dict.fromkeys(names))}
