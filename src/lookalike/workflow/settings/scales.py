"""Scales, overlays and the configuration of one call."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from lookalike.workflow.settings.model import Count, Model, Name, Natural, Positive, SomeUnique, Unique
from lookalike.workflow.settings.recipes import RecipePart, TrainPart

Halves = Literal["fixed", "crossed"]


class Rung(Model):
    """Trials with the same seeds."""

    seeds: SomeUnique[Natural]
    """Of each trial, the same for all; others than those that tables report."""
    survivors: Count | None = None
    """How many reach the next rung; the last one has none."""


class RateTrials(Model):
    """How the target `rates` searches those of each kind of recipe: by successive halving of a grid."""

    trunk: SomeUnique[Positive]
    """Levels of its rate."""
    head: SomeUnique[Positive]
    """Levels of the rate of the new layers, each tried with each of the trunk's."""
    epochs: Count
    """Length of every trial: what suits a long training does not show within a short one."""
    batches_per_epoch: Count
    """Batches of each epoch."""
    rungs: Annotated[list[Rung], Field(min_length=2)]
    """The first tries the whole grid."""
    train: TrainPart = {}
    """Laid over the recipe's section train in trials: smaller pictures."""

    @model_validator(mode="after")
    def _is_halving(self) -> Self:
        """Refuse rungs that do not say how many go on, or a last one that does."""
        for number, rung in enumerate(self.rungs, start=1):
            if (rung.survivors is None) != (rung is self.rungs[-1]):
                raise ValueError(
                    f"rungs: {'no' if rung.survivors is None else 'unread'} survivors of rung {number} of "
                    f"{len(self.rungs)}; all but the last state them"
                )
        return self


class Scale(Model):
    """A scale (params/scales/<name>.yaml), or an overlay as far as it is one."""

    title: str
    """Of tables and pages."""
    like: str | None = None
    """Another scale whose recipe and embedding_dims lie below."""
    tables: Literal["all"] | Unique[str]
    """What the target `tables` builds; `all`: all in the files of the papers."""
    datasets: Annotated[dict[Name, dict[str, Any] | None], Field(min_length=1)]
    """Data sets of this scale, each with the published set it stands for."""

    strangers: str = ""
    """Data set whose training pictures replace others in recipes with image noise."""
    strangers_super: Natural | None = None
    """Of the strangers only those with this coarse_super, whatever their role."""
    halves: Halves = "fixed"
    """Crossed: odd seeds train on the test classes of a data set and are tested on its training classes.
    Each half needs two seeds, as [0, 1, 2, 3]; data with queries and a gallery keep one half."""
    embedding_dims: dict[int, Count] = {}
    """Published embedding size: size at this scale, as {512: 64}."""
    rates: RateTrials | str | None = None
    """How rates are searched; or the name of a scale or overlay whose choices hold here too."""
    figures: Annotated[dict[str, dict[str, Any]], Field(min_length=1)] | None = None
    """Which figures there are, and what is laid over each one's entry in params/figures.yaml."""
    figure_seeds: dict[str, Literal[10, 20]] = {}
    """Seeds of a call that names such a figure: the second or third look, as three seeds decide little."""
    explanations: dict[str, Any] = {}
    """Laid over params/explanations.yaml."""
    page: dict[str, Any] = {}
    """Laid over params/page.yaml."""
    recipe: RecipePart = RecipePart()
    """Laid over every recipe; segment over those that segment."""

    @model_validator(mode="after")
    def _of_strangers(self) -> Self:
        if self.strangers_super is not None and not self.strangers:
            raise ValueError("'strangers' is a dependency of 'strangers_super'")
        return self
