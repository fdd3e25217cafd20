"""The start of the network that learns from drawn data, and the measurements of a card."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.model import Count, Model, Natural, Positive, Rate, Some, SomeUnique
from lookalike.workflow.settings.recipes import TrainPart


class DrawnSets(Model):
    """Sets of figurines that are drawn like a data set."""

    like: str
    """Data set of params/datasets with a generator."""
    seeds: SomeUnique[Natural]
    classes: dict[str, Any] = {}
    """Ids of its classes, where it is drawn with fewer than the data set has."""


class DrawnSet(Model):
    """One of these sets."""

    name: str
    """Of the folder that it is drawn into."""
    specification: Dataset
    """How it is drawn and read."""


class Pretraining(Model):
    """The start of the network of drawn data (params/start.yaml)."""

    weights: Annotated[str, Field(pattern=r"\.safetensors$")]
    """File that `pretrain` writes."""
    drawn: Some[DrawnSets]
    measured_on: DrawnSets
    train: TrainPart
    """Section `train` of a recipe, over params/defaults.yaml."""


class CardKind(Model):
    """A kind of training on a card."""

    step_ms: Positive
    """Of a picture in a step, its loading included."""
    alone_ms: Positive
    """Of a picture in the same step on a batch in memory."""
    search_ms: Positive
    """Of a test picture in a search between epochs."""
    memory_gb: Rate
    """The most that the device held; 0 on a processor."""


class MeasuredCard(Model):
    """What was measured on one kind of card (params/cards), written by `lookalike measure`."""

    name: str
    """What the card calls itself."""
    date: Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    versions: dict[str, str]
    steps: Count
    """Of each kind."""
    kinds: dict[str, CardKind]
