"""Put the quality of all explanations into one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.files import read_json, replacing, write_text
from lookalike.reports.explanations import RECALL, explanation_cells, readers_table
from lookalike.tables.render import latex, markdown

CHECKPOINT = "best"  # that was explained


def explanations_table(
    settings: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    scale: str,
    measures: Sequence[str],
    metrics: Sequence[str],
    output: str,
) -> None:
    """Write the table as CSV, Markdown and LaTeX.

    Args:
        settings: as `lookalike.plan.explanations.read_explanations` gives them.
        rows: as `lookalike.plan.explanations.explanation_rows` gives them.
        scale: what the scale calls itself.
        measures: JSON files of the stage ``explain``, in the order of the rows.
        metrics: JSON files of the metrics of their runs, in the same order.
        output: path without extension.

    Raises:
        ValueError: if rows of a data set were not measured on the same number of triplets.
    """
    found = [read_json(path) for path in measures]
    counts: dict[str, int] = {}
    objects: dict[str, str] = {}
    for row, each, path in zip(rows, found, measures, strict=True):
        count = len(each["values"]["partner"])
        if counts.setdefault(row["dataset"], count) != count:
            raise ValueError(f"{path} was measured on {count} triplets, others on {counts[row['dataset']]}; remove it")
        objects[row["dataset"]] = each["object"] or ""
    cells = explanation_cells(rows, found, [read_json(path)[CHECKPOINT][RECALL] for path in metrics])
    with replacing(f"{output}.csv") as temporary:
        cells.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")
    table = readers_table(settings, cells, counts=counts, objects=objects, scale=scale)
    write_text(f"{output}.md", markdown(table))
    write_text(f"{output}.tex", latex(table))
