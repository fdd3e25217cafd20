"""Rows beside which those of a table count: chance and the untrained start, of ``params/trivial.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.checks import require_known, require_own_labels
from lookalike.parameters import Settings, read

FILE = "params/trivial.yaml"
# What a trivial row has in common with the first row of its table: what is measured, not what is learned.
PROTOCOL = {
    "train": ("backbone", "test_image"),
    "embed": ("training_pictures",),
    "evaluate": ("average_precision", "count_query_in_r", "nmi"),
}


def trivial_rows(
    table: str, entry: Mapping[str, Any], recipes: Mapping[str, Sequence[Settings]], first: Sequence[Settings]
) -> tuple[list[Settings], dict[str, list[Settings]]]:
    """The rows that a table gets below its own, and their recipes.

    Args:
        table: name of the table.
        entry: the table's entry, as the files or a sweep give it.
        recipes: layers of the recipes of the files.
        first: layers of the recipe of the table's first row.

    Returns:
        Rows with ``trivial: true``, and layers by the names ``<table>_<recipe>``. None for a table of segmentation.

    Raises:
        ValueError: for a recipe that does not exist, or a label that a row of the table has already.
    """
    if any(layer.get("segment") for layer in first):
        return [], {}
    rows, layers, stated = [], {}, read(FILE, "trivial")["rows"]
    require_own_labels(FILE, (repr(row["label"]) for row in stated))
    for row in stated:
        require_known(f"{FILE}, row {row['label']!r}, recipe", row["recipe"], recipes)
        if row["label"] in (listed["label"] for listed in entry["rows"]):
            raise ValueError(f"table {table}, row {row['label']!r}: {FILE} gives every table this row, leave it out")
        recipe = f"{table}_{row['recipe']}"
        rows.append({**row, "recipe": recipe, "trivial": True})
        layers[recipe] = [*recipes[row["recipe"]], *map(_protocol, first)]
    return rows, layers


def _protocol(layer: Settings) -> Settings:
    """What `PROTOCOL` names of one layer, also of its values for single data sets."""
    protocol: Settings = {
        stage: {key: values[key] for key in keys if key in values}
        for stage, keys in PROTOCOL.items()
        if (values := layer.get(stage))
    }
    if "backbone" in protocol.get("train", {}):  # batch norm is how it would be trained
        backbone = protocol["train"]["backbone"]
        protocol["train"]["backbone"] = {key: value for key, value in backbone.items() if key != "batch_norm"}
    if "per_dataset" in layer:
        protocol["per_dataset"] = {name: _protocol(values) for name, values in layer["per_dataset"].items()}
    return protocol
