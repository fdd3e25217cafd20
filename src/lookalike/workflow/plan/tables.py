"""Entries of ``params/tables``, and the trivial rows that each gets below its own: read, and checked before any job."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from lookalike.base.checks import require_known, require_own_labels
from lookalike.base.paths import project_root
from lookalike.methods import METHODS
from lookalike.metrics.names import AT_CUT_OFFS, OF_REGIONS
from lookalike.workflow.plan.published import nameable_datasets, papers, printed_rows, printed_table, repeated_row
from lookalike.workflow.plan.recipes import StatedRecipe
from lookalike.workflow.plan.scales import measured_metrics
from lookalike.workflow.settings import datasets as data
from lookalike.workflow.settings import tables as stated
from lookalike.workflow.settings.files import read, read_entries
from lookalike.workflow.settings.layers import Layer, Tree
from lookalike.workflow.settings.tables import PlannedRow, PlannedTable, Row, TrivialRows

StandIns = Sequence[tuple[str | None, data.Dataset]]  # per data set of a call the published one that it stands for


def read_tables(recipes: Collection[str], stand_ins: StandIns) -> dict[str, PlannedTable]:
    """All tables of the files by name.

    Args:
        recipes: names of all recipes.
        stand_ins: data sets of the call.

    Raises:
        ValueError: for a name that two files use, and as `check_table`.
    """
    tables: dict[str, PlannedTable] = {}
    file_of: dict[str, str] = {}
    for path in sorted((project_root() / "params" / "tables").glob("*.yaml")):
        file = str(path.relative_to(project_root()))
        for name, table in read_entries(file, stated.Table).items():
            if name in tables:
                raise ValueError(f"{file}: a table named {name!r} exists already in {file_of[name]}")
            tables[name], file_of[name] = PlannedTable(**table.dump()), file
    for name, entry in tables.items():
        for row in entry.rows:
            require_known(f"{file_of[name]}: table {name}, row {row.label!r}, recipe", row.recipe, recipes)
        check_table(entry, f"{file_of[name]}: table {name}", stand_ins)
    return tables


def tables_of_papers() -> list[str]:
    """Names of all tables in the files of the papers, which `tables: all` of a scale asks for."""
    return [name for paper in papers() for name in read_entries(f"params/tables/{paper}.yaml", stated.Table)]


def check_table(entry: PlannedTable, where: str, stand_ins: StandIns) -> None:
    """Refuse a table with data sets, metrics or rows that do not exist.

    Args:
        entry: the table's entry of ``params/tables`` or of a sweep.
        where: file and name of the table, for the message.
        stand_ins: data sets of the call.

    Raises:
        ValueError: naming place, key and what would be right.
    """
    printed = None
    if entry.published:
        require_known(f"{where}, published.paper", entry.published.paper, papers())
        printed = printed_table(**entry.published.dump(), where=f"{where}, published.table")
    named = entry.named_datasets
    datasets = nameable_datasets() if named else set()
    for dataset in named:
        require_known(f"{where}, datasets", dataset, datasets)
    measured = _measured(named, stand_ins) | {AT_CUT_OFFS} | set([] if printed is None else printed["metric"])
    for metric in entry.metrics:
        require_known(f"{where}, metrics", metric, measured)
    require_own_labels(where, (f"{row.label!r}{on}" for row in entry.rows for on in _standing(row, named)))
    labels = {row.label for row in entry.rows}
    printed_as = None if printed is None else printed_rows(printed)
    for row in entry.rows:
        here = f"{where}, row {row.label!r}"
        for dataset in row.datasets:
            require_known(f"{here}, datasets", dataset, named)
        if "against" in row.model_fields_set:
            require_known(f"{here}, against", row.against, labels - {row.label})
        if row.published and printed_as is not None:
            repeated_row(printed_as, row.published, f"{here}, published")
        for point in row.prints.values():
            require_known(f"{here}, published.table.paper", point.table.paper, papers())
            numbers = printed_table(**point.table.dump(), where=f"{here}, published.table.table")
            repeated_row(printed_rows(numbers), point.row, f"{here}, published.row")


def _standing(row: Row, named: Collection[str]) -> list[str]:
    """The data sets that a row stands for, in words; a label may stand again for others."""
    return [f" on {dataset}" for dataset in row.datasets or named] or [""]


def _measured(named: Collection[str], stand_ins: StandIns) -> set[str]:
    """Names of all metrics that data sets have, those of the call and the published ones that a table names."""
    described = [about for published, about in stand_ins if not named or published in named]
    folder = project_root() / "params" / "datasets"
    described += [read(path, data.Dataset) for name in named if (path := folder / f"{name}.yaml").is_file()]
    return measured_metrics(described) | {*OF_REGIONS}


FILE = "params/trivial.yaml"
# What a trivial row has in common with the first row of its table: what is measured, not what is learned.
PROTOCOL = {
    "train": ("backbone", "test_image"),
    "embed": ("training_pictures",),
    "evaluate": ("average_precision", "count_query_in_r", "nmi"),
}
# What the untrained start of a recipe has in common with it: all that its R@1 depends on, but what is learned.
OF_START = {"train": ("backbone", "test_image", "embedding"), "embed": ("representation",), "evaluate": ("scoring",)}


def trivial_rows(
    table: str, entry: PlannedTable, recipes: Mapping[str, StatedRecipe], first: StatedRecipe
) -> tuple[list[PlannedRow], dict[str, StatedRecipe]]:
    """The rows that a table gets below its own, and their recipes.

    Args:
        table: name of the table.
        entry: the table's entry, as the files or a sweep give it.
        recipes: those of the files.
        first: recipe of the table's first row.

    Returns:
        Rows that are ``trivial``, and recipes by the names ``<table>_<recipe>``. None for a table of segmentation.

    Raises:
        ValueError: for a recipe that does not exist, or a label that a row of the table has already.
    """
    if first.trained_on:
        return [], {}
    rows, trivial, stated = [], {}, read(FILE, TrivialRows).rows
    require_own_labels(FILE, (repr(row.label) for row in stated))
    for row in stated:
        require_known(f"{FILE}, row {row.label!r}, recipe", row.recipe, recipes)
        if row.label in (listed.label for listed in entry.rows):
            raise ValueError(f"table {table}, row {row.label!r}: {FILE} gives every table this row, leave it out")
        recipe = f"{table}_{row.recipe}"
        rows.append(PlannedRow(label=row.label, recipe=recipe, trivial=True, says=row.says))
        base = recipes[row.recipe]
        trivial[recipe] = replace(
            base,
            paper="comparison",
            layers=(*base.layers, *_protocols(first, PROTOCOL)),
            like=None,
        )
    return rows, trivial


def start_of(untrained: StatedRecipe, trained: StatedRecipe) -> StatedRecipe:
    """A recipe before any training: untrained features, pooled and compared as it pools and compares.

    Comparing by what is learned, as by AVSL's graph, makes way for the cosine. Stripes have heads, as they are drawn.
    """
    return replace(untrained, layers=(*untrained.layers, *_protocols(trained, OF_START)), like=None)


def rca_of(mapped: StatedRecipe, trained: StatedRecipe) -> StatedRecipe:
    """As `start_of`, but mapped as the first recipe is, and compared by the cosine."""
    return replace(mapped, layers=(*mapped.layers, *_protocols(trained, {"train": OF_START["train"]})), like=None)


def _protocols(recipe: StatedRecipe, kept: Mapping[str, Sequence[str]]) -> list[Layer]:
    return [Layer(layer.origin, _protocol_of(layer.values, kept)) for layer in recipe.layers]


def _protocol_of(layer: Tree, kept: Mapping[str, Sequence[str]]) -> Tree:
    """The kept keys of one layer, also of its values for single data sets."""
    protocol: Tree = {
        stage: {key: values[key] for key in keys if key in values}
        for stage, keys in kept.items()
        if (values := layer.get(stage))
    }
    train, evaluate = protocol.get("train", {}), protocol.get("evaluate", {})
    for part, learned in (("backbone", "batch_norm"), ("embedding", "dim"), ("embedding", "initialisation")):
        own = train.get(part, {})
        if learned in own and not own.get("parts"):
            train[part] = {key: value for key, value in own.items() if key != learned}
    if evaluate.get("scoring", {}).get("name", "cosine") not in METHODS["embedder"].scorings:
        evaluate["scoring"] = {"name": "cosine"}
    if "per_dataset" in layer:
        protocol["per_dataset"] = {name: _protocol_of(values, kept) for name, values in layer["per_dataset"].items()}
    return protocol
