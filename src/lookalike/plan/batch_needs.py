"""What the batches of a recipe take, told without building a sampler, which needs torch."""

from __future__ import annotations

from typing import NamedTuple

from lookalike.settings.recipes import Train

# Samplers whose batches hold distinct classes, so many as the batch has groups.
OF_DISTINCT_CLASSES = ("balanced", "cyclic", "grouped")


class Need(NamedTuple):
    """What a batch takes: ``number`` of ``what``, classes or pictures, and the largest batch that ``there`` fills."""

    number: int
    what: str
    largest: int


def unmet_need(train: Train, pictures: int, classes: int) -> Need | None:
    """What the batches of a training lack, ``None`` if they can be filled.

    Args:
        train: the recipe's ``train`` section.
        pictures: number of pictures of the training classes.
        classes: among them.
    """
    if train.loss is None:
        return None
    sampler, batch_size = train.sampler, train.batch_size
    if sampler.name == "plain" and pictures < batch_size:
        return Need(batch_size, "pictures", pictures)
    per_class = int(sampler.options.get("per_class", 1))
    groups = batch_size // per_class
    if sampler.name in OF_DISTINCT_CLASSES and classes < groups:
        return Need(groups, "classes", classes * per_class)
    return None
