"""Entries of ``params/tables``, and the trivial rows that each gets below its own: read, and checked before any job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from lookalike.checks import require_known, require_own_labels
from lookalike.metrics.names import AT_CUT_OFFS, OF_REGIONS, of_data_sets
from lookalike.paths import project_root
from lookalike.plan.published import nameable_datasets, papers, printed_rows, printed_table, repeated_row
from lookalike.plan.recipes import StatedRecipe
from lookalike.settings import datasets as data
from lookalike.settings import tables as stated
from lookalike.settings.files import read, read_entries
from lookalike.settings.layers import Layer, Tree
from lookalike.settings.tables import TrivialRows


def read_tables(recipes: Collection[str], stand_ins: Iterable[tuple[str | None, Tree]]) -> dict[str, Tree]:
    """All tables of the files by name.

    Args:
        recipes: names of all recipes.
        stand_ins: per data set of the call, the published one that it stands for and its specification.

    Raises:
        ValueError: for a name that two files use, and as `check_table`.
    """
    tables: dict[str, Tree] = {}
    file_of: dict[str, str] = {}
    stand_ins = list(stand_ins)
    for path in sorted((project_root() / "params" / "tables").glob("*.yaml")):
        file = str(path.relative_to(project_root()))
        for name, table in read_entries(file, stated.Table).items():
            if name in tables:
                raise ValueError(f"{file}: a table named {name!r} exists already in {file_of[name]}")
            tables[name], file_of[name] = table.dump(), file
    for name, entry in tables.items():
        for row in entry["rows"]:
            require_known(f"{file_of[name]}: table {name}, row {row['label']!r}, recipe", row["recipe"], recipes)
        check_table(entry, f"{file_of[name]}: table {name}", stand_ins)
    return tables


def tables_of_papers() -> list[str]:
    """Names of all tables in the files of the papers, which `tables: all` of a scale asks for."""
    return [name for paper in papers() for name in read_entries(f"params/tables/{paper}.yaml", stated.Table)]


def check_table(entry: Mapping[str, Any], where: str, stand_ins: Iterable[tuple[str | None, Tree]]) -> None:
    """Refuse a table with data sets, metrics or rows that do not exist.

    Args:
        entry: the table's entry of ``params/tables`` or of a sweep.
        where: file and name of the table, for the message.
        stand_ins: per data set of the call, the published one that it stands for and its specification.

    Raises:
        ValueError: naming place, key and what would be right.
    """
    printed = None
    if "published" in entry:
        require_known(f"{where}, published.paper", entry["published"]["paper"], papers())
        printed = printed_table(**entry["published"], where=f"{where}, published.table")
    named = [] if entry["datasets"] == "own" else entry["datasets"]
    datasets = nameable_datasets() if named else set()
    for dataset in named:
        require_known(f"{where}, datasets", dataset, datasets)
    measured = _measured(named, stand_ins) | {AT_CUT_OFFS} | set([] if printed is None else printed["metric"])
    for metric in entry["metrics"]:
        require_known(f"{where}, metrics", metric, measured)
    require_own_labels(where, (f"{row['label']!r}{on}" for row in entry["rows"] for on in _standing(row, named)))
    labels = {row["label"] for row in entry["rows"]}
    printed_as = None if printed is None else printed_rows(printed)
    for row in entry["rows"]:
        here = f"{where}, row {row['label']!r}"
        for dataset in row.get("datasets", []):
            require_known(f"{here}, datasets", dataset, named)
        if "against" in row:
            require_known(f"{here}, against", row["against"], labels - {row["label"]})
        if "published" in row and printed_as is not None:
            repeated_row(printed_as, row["published"], f"{here}, published")


def _standing(row: Mapping[str, Any], named: Collection[str]) -> list[str]:
    """The data sets that a row stands for, in words; a label may stand again for others."""
    return [f" on {dataset}" for dataset in row.get("datasets", named)] or [""]


def _measured(named: Collection[str], stand_ins: Iterable[tuple[str | None, Tree]]) -> set[str]:
    """Names of all metrics that data sets have, those of the call and the published ones that a table names."""
    specifications = [settings for published, settings in stand_ins if not named or published in named]
    folder = project_root() / "params" / "datasets"
    specifications += [read(path, data.Dataset).dump() for name in named if (path := folder / f"{name}.yaml").is_file()]
    return of_data_sets(specifications) | {*OF_REGIONS}


FILE = "params/trivial.yaml"
# What a trivial row has in common with the first row of its table: what is measured, not what is learned.
PROTOCOL = {
    "train": ("backbone", "test_image"),
    "embed": ("training_pictures",),
    "evaluate": ("average_precision", "count_query_in_r", "nmi"),
}


def trivial_rows(
    table: str, entry: Mapping[str, Any], recipes: Mapping[str, StatedRecipe], first: StatedRecipe
) -> tuple[list[Tree], dict[str, StatedRecipe]]:
    """The rows that a table gets below its own, and their recipes.

    Args:
        table: name of the table.
        entry: the table's entry, as the files or a sweep give it.
        recipes: those of the files.
        first: recipe of the table's first row.

    Returns:
        Rows with ``trivial: true``, and recipes by the names ``<table>_<recipe>``. None for a table of segmentation.

    Raises:
        ValueError: for a recipe that does not exist, or a label that a row of the table has already.
    """
    if first.trained_on:
        return [], {}
    rows, trivial, stated = [], {}, read(FILE, TrivialRows).rows
    require_own_labels(FILE, (repr(row.label) for row in stated))
    for row in stated:
        require_known(f"{FILE}, row {row.label!r}, recipe", row.recipe, recipes)
        if row.label in (listed["label"] for listed in entry["rows"]):
            raise ValueError(f"table {table}, row {row.label!r}: {FILE} gives every table this row, leave it out")
        recipe = f"{table}_{row.recipe}"
        rows.append({**row.dump(), "recipe": recipe, "trivial": True})
        base = recipes[row.recipe]
        trivial[recipe] = replace(
            base,
            paper="comparison",
            layers=(*base.layers, *map(_protocol, first.layers)),
            like=None,
        )
    return rows, trivial


def _protocol(layer: Layer) -> Layer:
    return Layer(layer.origin, _protocol_of(layer.values))


def _protocol_of(layer: Tree) -> Tree:
    """What `PROTOCOL` names of one layer, also of its values for single data sets."""
    protocol: Tree = {
        stage: {key: values[key] for key in keys if key in values}
        for stage, keys in PROTOCOL.items()
        if (values := layer.get(stage))
    }
    if "backbone" in protocol.get("train", {}):  # batch norm is how it would be trained
        backbone = protocol["train"]["backbone"]
        protocol["train"]["backbone"] = {key: value for key, value in backbone.items() if key != "batch_norm"}
    if "per_dataset" in layer:
        protocol["per_dataset"] = {name: _protocol_of(values) for name, values in layer["per_dataset"].items()}
    return protocol
