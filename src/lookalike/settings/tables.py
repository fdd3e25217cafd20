"""Tables, sweeps and trivial rows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from lookalike.settings.model import Model, Natural, Some, SomeUnique
from lookalike.settings.recipes import DatasetSections, EmbedPart, EvaluatePart, TrainPart


class PrintedTable(Model):
    """The printed table whose rows stand beside ours."""

    paper: str
    table: str
    read_as: Annotated[dict[str, str], Field(min_length=1)] = {}
    """Metric in params/published -> the one that the numbers are, where a caption is wrong."""


class PrintedRow(Model):
    """Which row of the printed table a row repeats."""

    method: str
    setting: str = ""
    embedding_dim: int | None = None


class Row(Model):
    """A row of a table."""

    recipe: str
    label: str
    trivial: bool = False
    """An answer without looking; rows above it that reach less are named in a note."""
    against: str = ""
    """Label of the row that this one is compared with, seed by seed."""
    datasets: Some[str] = []
    """Those that fill this row, where not all do."""
    seeds: SomeUnique[Natural] = []
    """In place of the call's."""
    published: PrintedRow | None = None


class Table(Model):
    """An entry of params/tables/<paper>.yaml."""

    title: str
    published: PrintedTable | None = None
    datasets: Literal["own"] | Some[str]
    """Published data sets, or `own` for all of an overlay."""
    metrics: SomeUnique[str]
    """R@k stands for all cut-offs of the data sets."""
    notes: Some[str] | Annotated[dict[str, Some[str]], Field(min_length=1)] = []
    """Footnotes of the table, or of its sections by published data set."""
    checkpoint: Literal["best", "last"] = "best"
    terms: bool = False
    """Show of each row its rates, pooling and embedding size and what it cost, and note the terms of all."""
    rows: Some[Row]


class Choice(Model):
    """A named choice along an axis of a sweep."""

    like: str | None = None
    """A recipe to start from."""
    where: dict[str, dict[Any, DatasetSections]] = {}
    """Axis -> its value -> what is laid over then."""
    train: TrainPart = {}
    embed: EmbedPart = {}
    evaluate: EvaluatePart = {}
    per_dataset: dict[str, Any] = {}


class Values(Model):
    """Values of one key along an axis of a sweep."""

    key: Annotated[str, Field(pattern=r"^(train|embed|evaluate)(\.[a-z_]+)+$")]
    """What the values are laid over."""
    values: SomeUnique[int | float | str | bool | None]


def _kind_of_axis(axis: Any) -> str:
    return "[values]" if isinstance(axis, dict) and {"key", "values"} & axis.keys() else "[choices]"


Choices = Annotated[dict[str, Choice], Field(min_length=1)]
Axis = Annotated[
    Annotated[Values, Tag("[values]")] | Annotated[Choices, Tag("[choices]")], Discriminator(_kind_of_axis)
]


class Sweep(Model):
    """An entry of params/sweeps/<family>.yaml: a table with a row for every combination of choices."""

    title: str
    recipe: str | None = None
    """That every point starts from."""
    datasets: Some[str]
    """Published data sets."""
    metrics: SomeUnique[str]
    checkpoint: Literal["best", "last"] = "best"
    notes: list[str] = []
    axes: Annotated[dict[Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_]*$")], Axis], Field(min_length=1)]
    """Every choice of each is combined with every choice of the others."""


class TrivialRow(Model):
    """A row of every table of retrieval."""

    label: str
    recipe: str
    says: str
    """What it is, for the note below the title."""


class TrivialRows(Model):
    """Rows of every table of retrieval (params/trivial.yaml)."""

    rows: list[TrivialRow]
