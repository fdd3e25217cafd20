"""Tables, sweeps and trivial rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from lookalike.workflow.settings.model import Count, Key, Line, Model, Natural, Some, SomeUnique
from lookalike.workflow.settings.recipes import DatasetSections, EmbedPart, EvaluatePart, TrainPart


class PrintedTable(Model):
    """The printed table whose rows stand beside ours."""

    paper: str
    """File of params/published, as `avsl`."""
    table: str
    """Its column `table`, as `T1`."""
    read_as: Annotated[dict[str, str], Field(min_length=1)] = {}
    """Metric in params/published -> the one that the numbers are, where a caption is wrong."""


class PrintedRow(Model):
    """Which row of the printed table a row repeats."""

    method: str
    """The file's column of that name, as for the two below."""
    setting: str = ""
    """What tells rows of one method apart."""
    embedding_dim: int | None = None
    """Printed size D, where rows differ in it."""


class PrintedPoint(Model):
    """The printed row whose numbers stand beside a point of a sweep."""

    table: PrintedTable
    """Where it is printed."""
    row: PrintedRow
    """Which of its rows."""


class Row(Model):
    """A row of a table."""

    recipe: str
    """Name in any file of params/recipes."""
    label: Line
    """First column, and how other rows name this one."""
    trivial: bool = False
    """An answer without looking; rows above it that reach less are named in a note."""
    against: str = ""
    """Label of the row that this one is compared with, seed by seed."""
    under_test: SomeUnique[Key] = []
    """All that it may differ in from that row, beside rates that are chosen for each; the table's if left out."""
    as_in_paper: SomeUnique[Key] = []
    """What else the paper's own baseline differs in."""
    datasets: Some[str] = []
    """Those that fill this row, where not all do."""
    seeds: SomeUnique[Natural] = []
    """In place of the call's."""
    published: PrintedRow | None = None
    """Printed row whose numbers stand beside."""


class _OfTable(Model):
    """What a table says whether or not it is planned yet."""

    title: str
    """Heading."""
    published: PrintedTable | None = None
    """Printed table whose numbers stand beside; rows name theirs."""
    datasets: Literal["own"] | Some[str]
    """Published data sets, or `own` for all of an overlay."""
    metrics: SomeUnique[str]
    """R@k stands for all cut-offs of the data sets."""
    notes: Some[str] | Annotated[dict[str, Some[str]], Field(min_length=1)] = []
    """Footnotes of the table, or of its sections by published data set."""
    checkpoint: str = "best"
    """Epoch that the printed numbers are of; where it is not the last, ours of it stand beside those of the last."""
    trials: Count = 1
    """Trainings behind a printed number, 1 where the paper states none."""
    under_test: SomeUnique[Key] = []
    """Of rows that do not state it themselves."""
    terms: bool = False
    """Show of each row its rates, pooling and embedding size and what it cost, and note the terms of all."""
    rows: Sequence[Row]
    """Lines from top to bottom; trivial ones follow."""

    @property
    def named_datasets(self) -> list[str]:
        """Published data sets that it names, none of a table of own data."""
        return [] if self.datasets == "own" else self.datasets


class Table(_OfTable):
    """An entry of params/tables/<paper>.yaml."""

    checkpoint: Literal["best", "last"] = "best"
    """Epoch that the printed numbers are of; where it is not the last, ours of it stand beside those of the last."""
    rows: Some[Row]
    """Lines from top to bottom; trivial ones follow."""


class PlannedRow(Row):
    """A row of a planned table: of a file, of a sweep or a trivial one."""

    at: dict[str, Any] = {}
    """Of a sweep: axis -> value."""
    prints: dict[str, PrintedPoint] = {}
    """Of a sweep: published data set -> the printed row that was run with its settings."""
    says: str = ""
    """Of a trivial one: what it is."""


class PlannedTable(_OfTable):
    """A table as a call makes it, with trivial rows below its own and a row for each point of a sweep."""

    checkpoint: Literal["best", "last", "selected"] = "best"
    """`selected` by a training without some of the classes, with or without printed numbers."""
    rows: list[PlannedRow]
    remarks: list[str] = []
    """Notes on what the call makes of it."""

    @property
    def beside(self) -> Literal["best", "selected", ""]:
        """Epoch whose numbers stand beside those of the last one, empty for none."""
        if self.checkpoint == "last" or (self.checkpoint == "best" and self.published is None):
            return ""
        return self.checkpoint

    def with_rows(self, rows: Sequence[PlannedRow]) -> PlannedTable:
        """With further rows below its own."""
        return self.model_copy(update={"rows": [*self.rows, *rows]})


class Choice(Model):
    """A named choice along an axis of a sweep."""

    like: str | None = None
    """A recipe to start from."""
    where: dict[str, dict[Any, DatasetSections]] = {}
    """Axis -> its value -> what is laid over then."""
    train: TrainPart = {}
    """Keys of network, loss and training that this choice sets."""
    embed: EmbedPart = {}
    """Keys of the representation that it sets."""
    evaluate: EvaluatePart = {}
    """Keys of comparison and metrics that it sets."""
    per_dataset: dict[str, Any] = {}
    """By published data set what differs on it."""


class Values(Model):
    """Values of one key along an axis of a sweep."""

    key: Annotated[str, Field(pattern=r"^(train|embed|evaluate)(\.[a-z_]+)+$")]
    """What the values are laid over."""
    values: SomeUnique[int | float | str | bool | None]
    """Values that are tried, each a choice."""


def _kind_of_axis(axis: Any) -> str:
    return "[values]" if isinstance(axis, dict) and {"key", "values"} & axis.keys() else "[choices]"


Choices = Annotated[dict[str, Choice], Field(min_length=1)]
Axis = Annotated[
    Annotated[Values, Tag("[values]")] | Annotated[Choices, Tag("[choices]")], Discriminator(_kind_of_axis)
]


class Sweep(Model):
    """An entry of params/sweeps/<family>.yaml: a table with a row for every combination of choices."""

    title: str
    """Heading."""
    recipe: str | None = None
    """That every point starts from."""
    datasets: Some[str]
    """Published data sets."""
    metrics: SomeUnique[str]
    """Columns, as of a table."""
    notes: list[str] = []
    """Footnotes."""
    published: dict[str, PrintedPoint] = {}
    """By label the printed row of a point whose settings are those of no row of a table; others need none."""
    terms: bool = False
    """As of a table."""
    axes: Annotated[dict[Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_]*$")], Axis], Field(min_length=1)]
    """Every choice of each is combined with every choice of the others."""


class TrivialRow(Model):
    """A row of every table of retrieval."""

    label: Line
    recipe: str
    says: str
    """What it is, for the note below the title."""


class TrivialRows(Model):
    """Rows of every table of retrieval (params/trivial.yaml)."""

    rows: list[TrivialRow]
