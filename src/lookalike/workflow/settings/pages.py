"""Settings beside those of tables: figures, claims, explanations and the page."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from lookalike.workflow.settings.model import Count, Key, Line, Model, Natural, Some, SomeUnique, Unique


class FigureRuns(Model):
    """Runs whose files a figure reads, for every seed of the call."""

    recipe: str | None = None
    sweep: str | None = None
    """In place of recipe and data sets: all points of a sweep, whose axes are columns."""
    at: dict[str, Any] = {}
    """Only the points of the sweep that have these values, by axis."""
    datasets: SomeUnique[str] = []
    """Published data sets."""
    reads: Literal["embeddings", "metrics", "history", "model"]
    settings: dict[str, str] = {}
    """Columns, and the settings of the recipe that they hold, as train.loss.eps."""
    place: dict[str, Any] = {}
    """Where the run stands in the figure: columns of its data and their values."""

    @model_validator(mode="after")
    def _of_recipe_or_sweep(self) -> Self:
        given = self.model_fields_set
        if {"recipe", "sweep"} <= given:
            raise ValueError("there must be 'recipe' and 'datasets' or 'sweep', and not both")
        if "sweep" not in given and (not {"recipe", "datasets"} <= given or "at" in given):
            raise ValueError("there must be 'recipe' and 'datasets' or 'sweep'; 'at' is of a sweep")
        return self


class Figure(Model):
    """An entry of params/figures.yaml."""

    place: str
    """Paper and figure."""
    title: str
    shows: str
    """What is plotted against what."""
    says: str
    """What the paper claims about it, in our words."""
    chosen: str = ""
    """What the paper leaves open and how we took it."""
    alone: bool = False
    """A measurement of time or memory, during which nothing else may run."""
    runs: SomeUnique[FigureRuns] = []
    options: dict[str, Any] = {}
    """Passed to the function that computes the data."""


class PlannedFigure(Figure):
    """A figure as a call draws it."""

    seeds: list[Natural] = []
    """In place of the call's."""


class Pair(Model):
    """Two recipes that a claim compares."""

    changed: str
    baseline: str
    undisturbed: SomeUnique[str] = []
    """Of a pair that is disturbed, recipes of both sides without that. They have to have learned, else the baseline."""
    as_in_paper: SomeUnique[Key] = []
    """What else the paper's own baseline differs in; a pair without it stands beside."""


class Claim(Model):
    """A claim of a paper in words (params/claims.yaml)."""

    says: str
    """What the paper says, in our words."""
    quantifier: Literal["every", "mean", "some"]
    """Of how many pairs and data sets it says so."""
    place: str
    """Paper, and section, table or figure."""
    metric: str
    """Of the last epoch; that of the best one is shown beside it."""
    direction: Literal["higher", "lower", "different"]
    """Of the changed recipe against the baseline."""
    under_test: SomeUnique[Key] = []
    """All that the sides of a pair may differ in, beside rates that are chosen for each."""
    datasets: SomeUnique[str]
    """Published data sets."""
    pairs: SomeUnique[Pair]


class Neutral(Model):
    """Whose embeddings say what is nearest, for all rows."""

    recipe: str
    seed: Natural


class ExplanationRow(Model):
    """A model and what explains it."""

    label: Line
    recipe: str
    """Whose model is explained."""
    explainer: str
    """A method of lookalike.explain, or one of the controls random, centre and edges."""
    seeds: SomeUnique[Natural] = []
    """In place of the call's, as for a model that learns nothing."""


class Block(Model):
    """Rows of explanations below one title."""

    title: str
    rows: Some[ExplanationRow]


class Explanations(Model):
    """How explanations are measured, and which (params/explanations.yaml)."""

    title: str
    seed: Natural
    """Of all draws."""
    triplets: Annotated[int, Field(ge=2)]
    """Anchors that are drawn, each with its nearest right and nearest wrong picture and a random partner."""
    neutral: Neutral
    grid: Annotated[int, Field(ge=5)]
    """Cells to a side to which all maps are pooled."""
    steps: Annotated[int, Field(ge=2)]
    """In which an anchor is deleted."""
    substitutes: SomeUnique[str]
    """What deleted patches make way for: keys of lookalike.explanations.quality.deletion.SUBSTITUTES."""
    datasets: SomeUnique[str]
    """Data sets of the scale, or the published ones that they stand for."""
    blocks: Some[Block]


class Page(Model):
    """What can be looked at pair by pair on the page (params/page.yaml)."""

    seed: Natural
    """Of the draw of queries."""
    tables: Unique[str]
    """Whose rows are shown, on those of their data sets that the scale has; none for a page without pairs."""
    queries: Count
    """Pictures that are drawn of each data set."""
    matches: Count
    """That are shown of a query."""
    thumbnail_px: Annotated[int, Field(ge=16)]
    """Longer side of a picture."""
