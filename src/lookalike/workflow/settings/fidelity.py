"""Disagreements of a paper and its released code."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lookalike.workflow.settings.layers import Tree, merge
from lookalike.workflow.settings.model import Model, Name, Some, Text
from lookalike.workflow.settings.recipes import DatasetSections, EmbedPart, EvaluatePart, TrainPart

Said = Text | None  # null where nothing is said or done


class OptionSettings(Model):
    """What a level lays over a recipe, or what a recipe must hold."""

    train: TrainPart = {}
    embed: EmbedPart = {}
    evaluate: EvaluatePart = {}
    per_dataset: dict[str, DatasetSections] = {}

    def anywhere(self) -> Tree:
        """Sections without the differences per data set."""
        return self.model_dump(exclude={"per_dataset"}, exclude_unset=True)

    def on(self, published: str) -> Tree:
        """Sections as they hold on a published data set."""
        own = self.per_dataset.get(published)
        return merge(self.anywhere(), own.dump()) if own else self.anywhere()


class Departs(Model):
    """Which printed rows were made otherwise than ours, or nobody says how; {} for all that an option concerns."""

    where: Some[OptionSettings] = []
    """One of these a recipe must hold."""
    tables: Some[str] = []
    """Names in params/published; all where absent."""
    datasets: Some[str] = []
    """Published data sets; all where absent."""


class Levels(Model):
    """Settings by level; one that is absent falls back to recommended, whose {} means as recipes are."""

    recommended: OptionSettings
    paper: OptionSettings | None = None
    released: OptionSettings | None = None

    def at(self, level: str) -> OptionSettings:
        """Settings that hold at a level."""
        return {"paper": self.paper, "released": self.released}.get(level) or self.recommended


class Option(Model):
    """A disagreement that recipes can take either side of."""

    point: Text
    paper: Said
    released: Said
    recommended: Text
    """What we take and why."""
    recipe: str = ""
    """On which this option is tried instead."""
    departs: Departs | None = None
    where: OptionSettings = OptionSettings()
    """Added to the file's."""
    set: Levels
    alternatives: Annotated[
        dict[Annotated[str, Field(pattern="^(?!(recommended|paper|released)$)[a-z][a-z0-9_]*$")], OptionSettings],
        Field(min_length=1),
    ] = {}
    """What neither says, but could be meant; tried, and part of no level."""

    @model_validator(mode="after")
    def _silent_sets_nothing(self) -> Self:
        for side in ("paper", "released"):
            if getattr(self, side) is None and side in self.set.model_fields_set:
                raise ValueError(f"set.{side}: {side} is null, and who says nothing sets nothing; leave it out")
        return self


class Fixed(Model):
    """A disagreement without an option."""

    point: Text
    paper: Said
    released: Said
    recommended: Text
    departs: Departs | None = None
    because: Literal[
        "misprint",
        "silent",
        "agree",
        "equivalent",
        "defect",
        "sensible",
        "set_up",
        "reporting",
        "unreleased",
        "not_offered",
    ]


class Disagreements(Model):
    """Where a paper and its released code disagree (params/fidelity/<paper>.yaml)."""

    title: str
    """What the document calls it."""
    released: bool
    """Whether there is released code."""
    recipe: str
    """On which each option is tried."""
    where: OptionSettings = OptionSettings()
    """What a recipe must hold for the options to concern it."""
    options: Annotated[dict[Name, Option], Field(min_length=1)]
    fixed: list[Fixed]

    @model_validator(mode="after")
    def _nothing_released(self) -> Self:
        said = {f"options.{name}": option.released for name, option in self.options.items()}
        said |= {f"fixed.{number}": point.released for number, point in enumerate(self.fixed)}
        for place, words in said.items():
            if not self.released and words is not None:
                raise ValueError(
                    f"{place}.released: without released code there is nothing that it does, null is right"
                )
        return self
