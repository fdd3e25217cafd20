"""Rows beside which those of a table count: chance and the untrained start, of ``params/trivial.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lookalike.checks import require_known, require_own_labels
from lookalike.plan.recipes import StatedRecipe
from lookalike.settings.files import read
from lookalike.settings.layers import Layer, Tree
from lookalike.settings.tables import TrivialRows

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
