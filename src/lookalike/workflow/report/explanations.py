"""Quality of explanations, over many pairs and a few trainings: numbers, and a table for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lookalike.base.files import read_json, replacing, write_text
from lookalike.explanations.quality.deletion import normalised
from lookalike.explanations.quality.sanity_checks import BOX
from lookalike.metrics.names import REPORTED
from lookalike.workflow.plan.explanations import CONTROLS, Explained
from lookalike.workflow.report.statistics.crossed import Estimate, crossed_estimate
from lookalike.workflow.report.tables.layout import DASH, Cell, Grid, ReaderTable, Row, Section
from lookalike.workflow.report.tables.render import latex, markdown
from lookalike.workflow.settings import pages
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked

PLACE = ["block", "dataset", "label", "recipe", "explainer"]
CELLS = [*PLACE, "column", "mean", "low", "high", "pairs", "seeds", "reason"]
ERROR = 0.05
RECALL = "R@1"
NOTHING = "no triplet has a value in every training"


def explanations_table(
    settings: Tree,
    rows: Sequence[Tree],
    *,
    scale: str,
    measures: Sequence[str],
    metrics: Sequence[str],
    output: str,
) -> None:
    """Write the table as CSV, Markdown and LaTeX.

    Args:
        settings: as `lookalike.workflow.plan.explanations.read_explanations` gives them, as they are written.
        rows: as `lookalike.workflow.plan.explanations.explanation_rows` gives them, in mappings.
        scale: what the scale calls itself.
        measures: JSON files of the stage ``explain``, in the order of the rows.
        metrics: JSON files of the metrics of their runs, in the same order.
        output: CSV to write; the others lie beside it.

    Raises:
        ValueError: if rows of a data set were not measured on the same number of triplets.
    """
    explained = [Explained(**row) for row in rows]
    found = [read_json(path) for path in measures]
    drawn: dict[tuple[str, str], int] = {}
    objects: dict[str, str] = {}
    for row, each, path in zip(explained, found, measures, strict=True):
        count, place = len(each["values"]["partner"]), (row.dataset, row.half)
        if drawn.setdefault(place, count) != count:
            raise ValueError(f"{path} was measured on {count} triplets, others on {drawn[place]}; remove it")
        objects[row.dataset] = each["object"] or ""
    counts = {dataset: sum(count for (own, _), count in drawn.items() if own == dataset) for dataset in objects}
    cells = explanation_cells(explained, found, [read_json(path)[REPORTED][RECALL] for path in metrics])
    with replacing(output) as temporary:
        cells.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")
    written = checked(pages.Explanations, settings, "explanations")
    table = readers_table(written, cells, counts=counts, objects=objects, scale=scale)
    write_text(Path(output).with_suffix(".md"), markdown(table))
    write_text(Path(output).with_suffix(".tex"), latex(table))


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        name: of the measure.
        heading: what readers see.
        says: what it is, which way is better, and what chance or a known map reaches.
        form: of a number.
        beside: measures that stand in the same cell, with a word each.
        spread: whether its interval is shown.
    """

    name: str
    heading: str
    says: str
    form: str = "{:.2f}"
    beside: tuple[tuple[str, str], ...] = ()
    spread: bool = True


COLUMNS = (
    Column(RECALL, "R@1", "of the model that is explained, in percent: the price of its explanation", "{:.1f}"),
    Column(
        "deletion_blur",
        "deletion, blur",
        "the triplet's margin s(a, p) - s(a, n) while patches of the anchor are blurred, least relevant first minus "
        "most relevant first, in units of how much margins change when all is blurred; higher is better, 0 is chance, "
        "more than 1 is possible, as a margin grows while what speaks against it goes",
    ),
    Column("deletion_mean", "deletion, mean", "the same with patches of the mean colour; trust what both agree on"),
    Column(
        "agreement",
        "part agreement",
        "Spearman's correlation of what both maps of a pair say of the parts that both show, less that with a random "
        "partner; higher is better. Chance is 0, but pictures of a class share their pose: read it beside the bell's",
    ),
    Column(
        "pck@0.1",
        "PCK@0.1",
        "share of an anchor's parts that evidence from place to place leads to the same part of the positive, within a "
        "tenth of the longer side of its box; higher is better, up to what the method's grid can hold (of), and only "
        "above what staying in the same place reaches (stay)",
        beside=(("ceiling@0.1", "of"), ("same_place@0.1", "stay")),
    ),
    Column(
        "pck@0.2",
        "PCK@0.2",
        "the same within a fifth; higher is better",
        beside=(("ceiling@0.2", "of"), ("same_place@0.2", "stay")),
    ),
    Column(
        "inside",
        "inside",
        "share of the anchor's map (what is above zero) that lies on the object, less that of a bell in the middle; "
        "higher is better, 0 is no better than guessing the middle",
    ),
    Column(
        "partner",
        "partner randomisation",
        "Spearman's correlation of the anchor's map with that beside a random picture; lower is better, 1 is a map "
        "that does not know the partner",
    ),
    Column(
        "weights",
        "weight randomisation",
        "the same with the map of a network whose weights are shuffled; lower is better, 1 is a map that does not know "
        "the network",
    ),
    Column(
        "planted",
        "planted difference",
        "of two equal pictures one has a box of another picture: how probably a cell of the box shows more difference "
        "than one outside. It rests on the order of cells alone, so that maps without a sum have it like others; of "
        "those that only show what is alike the lowest cells count as different. Higher is better, 0.5 is chance",
    ),
    Column(
        "planted_hit",
        "planted, first",
        "how often the first of all cells lies in that box; higher is better, {chance:.2f} is chance",
    ),
    Column(
        "gap",
        "completeness gap",
        "how far the evidence's sum is from the measure that it explains, relative to it; 0 is exact",
        "{:.0e}",
        spread=False,
    ),
    Column(
        "milliseconds",
        "ms per pair",
        "wall-clock time of a map of each image; it compares methods only where nothing else ran; lower is better",
        "{:.3g}",
        spread=False,
    ),
)


def explanation_cells(rows: Sequence[Explained], measures: Sequence[Tree], recalls: Sequence[float]) -> pd.DataFrame:
    """One row per row of the table and measure: mean and 95 % interval over triplets and seeds.

    Args:
        rows: as `lookalike.workflow.plan.explanations.explanation_rows` gives them.
        measures: content of the files of the stage ``explain``, in the order of the rows.
        recalls: R@1 of the runs as fractions, in the same order.

    Returns:
        Columns `CELLS`; a measure that is not there has a reason in place of numbers.
    """
    found: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        found.setdefault(tuple(getattr(row, name) for name in PLACE), []).append(number)
    lines = []
    for place, numbers in found.items():
        halves: dict[str, list[int]] = {}
        for number in numbers:
            halves.setdefault(rows[number].half, []).append(number)
        values = [_values([measures[number] for number in each]) for each in halves.values()]
        for of_half, each in zip(values, halves.values(), strict=True):
            of_half[RECALL] = torch.tensor([[100 * recalls[number]] for number in each], dtype=torch.float64)
        listed = [name for column in COLUMNS for name in (column.name, *(each for each, _ in column.beside))]
        reasons = measures[numbers[0]]["reasons"]
        for name in listed:
            measured = all(name in of_half for of_half in values)
            if measured or name in reasons:
                line = _estimated([each[name] for each in values]) if measured else {"reason": reasons[name]}
                lines.append(dict(zip(PLACE, place, strict=True)) | {"column": name} | line)
    return pd.DataFrame(lines, columns=CELLS)


def readers_table(
    settings: pages.Explanations,
    cells: pd.DataFrame,
    *,
    counts: Mapping[str, int],
    objects: Mapping[str, str],
    scale: str,
) -> ReaderTable:
    """The table for readers, a section for each block and data set.

    Args:
        settings: as `lookalike.workflow.plan.explanations.read_explanations` gives them.
        cells: as `explanation_cells` gives them.
        counts: triplets of each data set.
        objects: what said where the object is, by data set; empty where nothing does.
        scale: what the scale calls itself.
    """
    sections = []
    for (block, dataset), own in cells.groupby(["block", "dataset"], sort=False):
        heading = f"{block}: {dataset}"
        sections.append(
            Section(str(dataset), heading, "", tuple(_remarks(own, counts[str(dataset)])), measured=_grid(own))
        )
    return ReaderTable("explanations", settings.title, _notes(settings, counts, objects, scale), sections)


def _values(measures: Sequence[Tree]) -> dict[str, Tensor]:
    """Values by measure ``(S, T)``, NaN where there is none; deletion in units of the most that margins can lose."""

    def stacked(name: str) -> Tensor:
        columns = [[torch.nan if value is None else value for value in each["values"][name]] for each in measures]
        return torch.tensor(columns, dtype=torch.float64)

    values = {name: stacked(name) for name in measures[0]["values"]}
    for name in [each for each in values if each.startswith("deletion_")]:
        whole = values.pop(name.replace("deletion", "whole"))
        values[name] = torch.stack([normalised(area, lost) for area, lost in zip(values[name], whole, strict=True)])
    return values


def _estimated(values: Sequence[Tensor]) -> dict[str, Any]:
    if not all(bool((~each.isnan()).all(dim=0).any()) for each in values):
        return {"reason": NOTHING}
    estimate = over_pairs(*values)
    low, high = estimate.interval(ERROR)
    return {"mean": estimate.mean, "low": low, "high": high, "pairs": estimate.classes, "seeds": estimate.seeds}


def _grid(cells: pd.DataFrame) -> Grid:
    columns = [column for column in COLUMNS if column.name in set(cells["column"])]
    lines = []
    for (label, explainer), own in cells.groupby(["label", "explainer"], sort=False):
        by_name = own.set_index("column").to_dict("index")
        texts = [Cell(_text(column, by_name)) for column in columns]
        lines.append(Row((Cell(str(label)), *texts), trivial=explainer in CONTROLS))
    return Grid(("explanation", *(column.heading for column in columns)), tuple(lines))


def _text(column: Column, cells: Mapping[Any, Mapping[Any, Any]]) -> str:
    cell = cells.get(column.name)
    if cell is None or isnan(cell["mean"]):
        return DASH
    text = _number(column, cell["mean"])
    if column.spread and not isnan(cell["high"]):
        text += f" ± {_number(column, cell['high'] - cell['mean'])}"
    beside = [f"{word} {_number(column, cells[name]['mean'])}" for name, word in column.beside if name in cells]
    return f"{text} ({', '.join(beside)})" if beside else text


def _number(column: Column, value: float) -> str:
    text = column.form.format(value)
    return text.removeprefix("-") if not float(text) else text  # no -0.00


def _remarks(cells: pd.DataFrame, count: int) -> list[str]:
    """Why numbers are missing, and how many triplets are behind those that are not behind all."""
    headings = {column.name: column.heading for column in COLUMNS}
    shown = cells[cells["column"].isin(headings)]
    remarks = []
    for reason, own in shown[shown["reason"].notna()].groupby("reason", sort=False):
        by_label = own.groupby("label", sort=False)["column"].agg(
            lambda names: ", ".join(headings[name] for name in names)
        )
        parts = [
            f"{columns} of {' / '.join(labels.index)}" for columns, labels in by_label.groupby(by_label, sort=False)
        ]
        remarks.append(f"Empty, as {reason}: {'; '.join(parts)}.")
    fewer = shown[shown["pairs"].notna() & (shown["pairs"] < count) & (shown["column"] != RECALL)]
    if len(fewer):
        spans = [
            f"{headings[str(name)]} {int(own.min())} to {int(own.max())}"
            for name, own in fewer.groupby("column", sort=False)["pairs"]
        ]
        remarks.append(
            f"Not all of the {count} triplets are behind each number, but, by row, {', '.join(spans)}: it is not "
            "defined where parts are hidden or a map is the same everywhere."
        )
    return remarks


def _notes(
    settings: pages.Explanations, counts: Mapping[str, int], objects: Mapping[str, str], scale: str
) -> list[str]:
    drawn = ", ".join(f"{count} of {dataset}" for dataset, count in counts.items())
    named = ", ".join(f"its {what} on {dataset}" for dataset, what in objects.items() if what)
    side = settings.grid
    chance = (BOX / side) ** 2
    return [
        f"Scale: {scale}. Mean ± half of the 95 % interval over triplets and seeds (crossed random effects; over "
        f"triplets alone where a model has one seed). Triplets (drawn: {drawn}; seed {settings.seed}) are anchors, "
        f"each with its nearest picture of its class and of another under `{settings.neutral.recipe}`, and a "
        f"random partner: the same for all rows. Maps are pooled to {side} x {side} cells, deletion takes "
        f"{settings.steps} steps"
        + (f"; the object is {named}." if named else ".")
        + " Rows in italics are controls, which know neither the pair nor the model. Do not rank rows of different "
        "models by small differences: each explains another similarity.",
        "\n".join(f"- {column.heading}: {column.says.format(chance=chance)}." for column in COLUMNS),
    ]


def over_pairs(*halves: Tensor) -> Estimate:
    """Mean over pairs and seeds, for other pairs and other trainings of their kind.

    Args:
        halves: ``(S, N)``, of the same N pairs in each of S trainings; of crossed halves those of each. A pair with NaN
            in any of its trainings is left out of all: `Estimate.classes` says how many are in.

    Returns:
        The estimate, pairs in the place of classes; ``interval(0.05)`` holds 95 %.

    Raises:
        ValueError: for another shape, infinity, or if no pair is left.
    """
    defined = []
    for values in halves:
        if values.ndim != 2:
            raise ValueError(f"values must be (S, N), seeds and pairs, not {tuple(values.shape)}")
        defined.append(values[:, ~values.isnan().any(dim=0)].double().cpu())
        if not defined[-1].shape[1]:
            raise ValueError(f"none of {values.shape[1]} pairs has a value in all of {values.shape[0]} trainings")
    seeds, pairs = (np.cumsum([0, *(values.shape[axis] for values in defined)]) for axis in (0, 1))
    crossed = np.full((seeds[-1], pairs[-1]), np.nan)
    for place, values in enumerate(defined):
        crossed[seeds[place] : seeds[place + 1], pairs[place] : pairs[place + 1]] = values.numpy()
    return crossed_estimate(crossed)
