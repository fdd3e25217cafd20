"""Scales, overlays and the configuration of one call."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from lookalike.settings.model import Count, Model, Name, Natural, Positive, SomeUnique, Unique
from lookalike.settings.recipes import RecipePart, TrainPart


class RatePair(Model):
    """Rates of trunk and head."""

    trunk: Positive
    head: Positive


class RateTrials(Model):
    """Rates among which the target `rates` chooses for each kind of recipe."""

    grid: SomeUnique[RatePair]
    """The pairs that are tried."""
    seeds: SomeUnique[Natural]
    """Of the trials; others than those that tables report."""
    train: TrainPart = {}
    """Laid over the recipe's section train in trials: a smaller budget, smaller pictures."""


class Scale(Model):
    """A scale (params/scales/<name>.yaml), or an overlay as far as it is one."""

    title: str
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
    embedding_dims: dict[int, Count] = {}
    """Published embedding size -> size at this scale."""
    rates: RateTrials | str | None = None
    """Rates to choose among; or the name of a scale or overlay whose choices hold here too."""
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
