"""Which rows of a table are held against which others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def baselines(table: Mapping[str, Any]) -> dict[int, list[int]]:
    """Rows of a table that are held against another of its rows, by their places.

    A row may stand several times, each time for other data sets; so may its baseline.

    Raises:
        ValueError: if ``against`` is not the label of another row.
    """
    labels = [row["label"] for row in table["rows"]]
    compared = {}
    for number, row in enumerate(table["rows"]):
        if "against" in row:
            compared[number] = [other for other, label in enumerate(labels) if label == row["against"]]
            if not compared[number] or row["against"] == row["label"]:
                others = ", ".join(dict.fromkeys(label for label in labels if label != row["label"]))
                raise ValueError(
                    f"table {table['title']!r}, row {row['label']!r}, against: {row['against']!r} is no other row; "
                    f"other rows: {others}"
                )
    return compared
