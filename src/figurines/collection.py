"""What a layout writes: the species of a data set and their pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from figurines.picture import Picture
from figurines.species import Species


@dataclass(frozen=True)
class Collection:
    """The species of a data set and their pictures, which are taken when they are asked for.

    Attributes:
        species: all species, in the order of their class ids.
        train_classes: number of species for training; they come first.
        shots: number of pictures of each species.
        shoot: takes a picture, given the index of the species and the picture's number among those of the species.
        taken: gives all pictures of a species that somebody else takes, once; without, they are taken here.
    """

    species: Sequence[Species]
    train_classes: int
    shots: Sequence[int]
    shoot: Callable[[int, int], Picture]
    taken: Callable[[int], Iterable[Picture]] | None = None

    def pictures(self, index: int) -> Iterator[tuple[int, Picture]]:
        """The pictures of one species with their numbers, from 0."""
        return enumerate(self.of_species(index) if self.taken is None else self.taken(index))

    def of_species(self, index: int) -> Iterator[Picture]:
        """The pictures of one species, taken here."""
        return (self.shoot(index, number) for number in range(self.shots[index]))
