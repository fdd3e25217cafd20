"""Species and their confusable neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Traits = dict[str, str]
Options = Mapping[str, Sequence[str]]
Telling = tuple[Sequence[str], Sequence[str]]
ATTEMPTS = 500


@dataclass(frozen=True)
class Species:
    """One class.

    Attributes:
        name: unique in its data set.
        family: decides the silhouette: bird family, body type, kind of product, category of garment.
        group: a coarser or crossing division: order of birds, make of cars.
        complex: number of the group of confusable species that it belongs to.
        traits: value of each trait; the first word of a trait names the part that shows it.
    """

    name: str
    family: str
    group: str
    complex: int
    traits: Traits


def difference(first: Traits, second: Traits) -> list[str]:
    """The traits in which two species differ."""
    return [trait for trait in first if first[trait] != second[trait]]


def confusable(options: Options, telling: Telling, size: int, rng: np.random.Generator) -> list[Traits]:
    """Traits of ``size`` species that agree in all but two traits, one drawn from each list of ``telling``.

    Values of these two repeat only where a trait has too few of them, so any two species differ in one or two traits.

    Raises:
        ValueError: if ``size`` species cannot all differ.
    """
    common = {trait: str(rng.choice(values)) for trait, values in options.items()}
    differing = [str(rng.choice(traits)) for traits in telling]
    values = {trait: rng.permutation(np.asarray(options[trait])).tolist() for trait in differing}
    most = max(map(len, values.values()))
    if size > most:
        raise ValueError(
            f"{size} species cannot all differ in {' and '.join(differing)}, which have at most {most} values"
        )
    return [common | {trait: known[nth % len(known)] for trait, known in values.items()} for nth in range(size)]


def distinct_complexes(
    options: Options, telling: Telling, size: int, count: int, rng: np.random.Generator, *, apart: int = 3
) -> list[list[Traits]]:
    """``count`` complexes of ``size`` confusable species each.

    Species of different complexes differ in at least ``apart`` traits.

    Raises:
        ValueError: if the traits do not suffice for so many complexes.
    """
    complexes: list[list[Traits]] = []
    for _ in range(ATTEMPTS * count):
        if len(complexes) == count:
            break
        candidate = confusable(options, telling, size, rng)
        known = [traits for members in complexes for traits in members]
        if all(len(difference(mine, other)) >= apart for mine in candidate for other in known):
            complexes.append(candidate)
    if len(complexes) < count:
        raise ValueError(
            f"{len(options)} traits do not suffice for {count} complexes of {size} species, {apart} traits apart"
        )
    return complexes


def complexes_by_family(
    families: Sequence[str], options: Options, telling: Telling, size: int, rng: np.random.Generator
) -> list[list[Traits]]:
    """A complex for each entry of ``families``; those of one family are distinct, those of two differ in silhouette."""
    drawn = {
        family: iter(distinct_complexes(options, telling, size, families.count(family), rng))
        for family in dict.fromkeys(families)
    }
    return [next(drawn[family]) for family in families]


def complexes_needed(classes: int, size: int) -> int:
    """Number of complexes of ``size`` that hold at least ``classes`` species."""
    return -(-classes // size)


def in_halves(complexes: Sequence[Sequence[Species]], train_classes: int, test_classes: int) -> list[Species]:
    """The species of the first complexes for training, then those of the others for testing: no complex is in both."""
    border = complexes_needed(train_classes, len(complexes[0]))
    train = [kind for members in complexes[:border] for kind in members]
    test = [kind for members in complexes[border:] for kind in members]
    return train[:train_classes] + test[:test_classes]
