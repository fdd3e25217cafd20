"""Parts of a method and the recipes that it allows, without importing torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ANY_LOSS = "lookalike.losses:LOSSES"
# Representations of one vector through a map that is fitted to the training pictures.
FITTED = ("relevant", "whitened")


def _nothing(recipe: Any) -> None:
    """Refuses no combination."""


def _one(options: Mapping[str, Any]) -> int:
    """An embedding of a picture."""
    return 1


@dataclass(frozen=True)
class Method:
    """A method by its parts, each a path ``package.module:name`` that is read without being imported.

    Attributes:
        learner: class that trains it, one of `lookalike.workflow.training.learner.Learner`.
        scorings: how its representations can be compared, of ``lookalike.workflow.training.evaluation``; its own first.
        options: definitions whose arguments ``train.method`` may set.
        losses: dictionary of the losses that it can be trained with.
        loss_class: class that it needs of them, where it needs one.
        loss_options: definitions whose arguments ``train.loss`` may set beside those of the loss.
        needs_loss: whether nothing can be done with it untrained.
        representations: what can be kept of a picture, of ``lookalike.workflow.training.evaluation``.
        keeps_locations: whether its own representation holds regions, which structural matching needs.
        is_structured: whether its own representation is more than one vector of the embedding's size, which it then
            has to be told and which cannot be cut to stripes.
        vectors: how many embeddings, one above the other or place by place, its own representation has of a picture,
            by the options of ``train.method``.
        learns: parts of ``train.optimiser.lr`` that it learns at a rate of their own whatever the loss.
        beside_loss: sections of ``train`` that it takes beside the loss, ``projector`` and ``regulariser``.
        scaled: options of ``train.method`` that keep their share of the embedding's size where a scale changes that.
        has_attention: whether similarity attention can be read off its models.
        check: what it refuses of a recipe whose values are right by themselves: a key and what is wrong, or nothing.
    """

    learner: str
    scorings: tuple[str, ...]
    options: tuple[str, ...] = ()
    losses: str = ANY_LOSS
    loss_class: str | None = None
    loss_options: tuple[str, ...] = ()
    needs_loss: bool = True
    representations: tuple[str, ...] = ("own",)
    keeps_locations: bool = False
    is_structured: bool = False
    vectors: Callable[[Mapping[str, Any]], int] = _one
    learns: tuple[str, ...] = ()
    beside_loss: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    has_attention: bool = False
    check: Callable[[Any], str | None] = _nothing
