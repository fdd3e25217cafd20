"""What the pair explorer reads: a small index, and of each query what all rows found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from lookalike.checks import workflow_extra
from lookalike.files import json_text
from lookalike.settings.layers import canonical

STEPS = 32  # of the colour map
COLOURS = "plasma"  # even steps of a map are even steps for the eye, also without colour
AGAINST = (30, 110, 230)  # what is below zero
OPACITY, CONTRAST = 0.85, 1.5  # of the colour where a map is largest, and the power by which it falls from there

Row = Mapping[str, Any]


def index(rows: Sequence[Row]) -> dict[str, Any]:
    """Data sets with their queries and rows.

    Args:
        rows: in the order of the page: ``label, recipe, dataset, title, found, recall, query_ms, training_s``, of which
            ``found`` is what the stage ``pairs`` wrote.

    Returns:
        ``datasets`` by name, each with its ``title``, ``queries`` and ``rows``, and how maps are coloured.

    Raises:
        ValueError: for rows of a data set with different queries.
    """
    datasets: dict[str, dict[str, Any]] = {}
    for row in rows:
        queries = [
            {"picture": query["picture"], "name": called(query["picture"]), "label": query["label"]}
            for query in row["found"]["queries"]
        ]
        dataset = datasets.setdefault(row["dataset"], {"title": row["title"], "queries": queries, "rows": []})
        if queries != dataset["queries"]:
            raise ValueError(
                f"{row['recipe']} on {row['dataset']} has other queries than the rows before it; remove its pairs"
            )
        dataset["rows"].append(_described(row))
    return {
        "datasets": datasets,
        "colours": colours(),
        "against": list(AGAINST),
        "opacity": OPACITY,
        "contrast": CONTRAST,
    }


def of_query(rows: Sequence[Row], dataset: str, query: int) -> list[list[Mapping[str, Any]]]:
    """What each row of a data set found for one of its queries."""
    return [row["found"]["queries"][query]["matches"] for row in rows if row["dataset"] == dataset]


def colours() -> list[list[int]]:
    """The colour map in even steps, red, green and blue up to 255."""
    with workflow_extra():
        from matplotlib import colormaps
    steps = [place / (STEPS - 1) for place in range(STEPS)]
    return [[round(255 * part) for part in colormaps[COLOURS](step)[:3]] for step in steps]


def called(picture: str) -> str:
    """A picture's name for readers: that of its file."""
    return PurePosixPath(picture).stem.replace("_", " ")


def view_key(view: Mapping[str, Any]) -> str:
    """What tells a view of a picture from others."""
    return canonical([view.get("resize_px"), view["crop_px"]])


def assigned(target: str, value: object) -> str:
    """A line of JavaScript that gives a value to a name, which a page from disk can read, other than JSON."""
    return f"{target} = {json_text(value, where=target, separators=(',', ':'), sort_keys=True)};\n"


def _described(row: Row) -> dict[str, Any]:
    shown = [match for query in row["found"]["queries"] for match in query["matches"]]
    first = [query["matches"][0] for query in row["found"]["queries"] if query["matches"]]
    return {
        "label": row["label"],
        "recipe": row["recipe"],
        "view": row["view"],
        "method": row["found"].get("method", ""),
        "measure": shown[0]["measure"] if shown else "",
        "recall": row["recall"],
        "query_ms": row["query_ms"],
        "training_s": row["training_s"],
        "right": sum(match["right"] for match in shown),
        "first": sum(match["right"] for match in first),
        "shown": len(shown),
    }
