"""What a figure is made of: a function that computes its data, one that draws them, one that checks what is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lookalike.statistics.decisions import MARGIN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Run:
    """A file of a finished run that a figure reads.

    Attributes:
        recipe: what was trained.
        published: data set of the paper.
        dataset: the one that stands for it at this scale.
        seed: of the training.
        reads: which file of the run: ``embeddings``, ``metrics``, ``history`` or ``model``.
        path: of that file.
        place: where the run stands in the figure, column names with their values, as its entry in
            ``params/figures.yaml`` gives them.
        manifest: CSV of the data set's split.
        root: folder of its pictures.
        layout: of its files, a key of ``lookalike.data.readers.READERS``.
    """

    recipe: str
    published: str
    dataset: str
    seed: int
    reads: str
    path: str
    place: Mapping[str, Any] = field(default_factory=dict)
    manifest: str = ""
    root: str = ""
    layout: str = ""


@dataclass(frozen=True)
class Check:
    """One thing that the paper says of a figure, held against the data.

    What differs from training to training is one number per seed, so taken that the claim is a mean above zero;
    `lookalike.figures.parts.decided` decides all of them together.

    Attributes:
        says: what is said and what was found, with its numbers.
        holds: whether it is so, where no seed could change it; ``None`` for all others.
        claimed: whether anything is.
        computed: whether it follows from a formula alone.
        statistic: a number per seed, in their order; claimed is that their mean is above zero.
        unit: of the statistic, which says what it is where it is no plain difference.
        margin: below which, either way, the mean counts as small; 0 where no size counts so.
        cases: where the claim is that several things are above zero, a number per seed of each; ``statistic`` is then
            of the one that the other seeds choose.
        needed: of how many of them; of all where it is left out.
    """

    says: str
    holds: bool | None = None
    claimed: bool = True
    computed: bool = False
    statistic: Sequence[float] = ()
    unit: str = "points"
    margin: float = MARGIN
    cases: Sequence[Sequence[float]] = ()
    needed: int | None = None


@dataclass(frozen=True)
class Figure:
    """How one figure comes about.

    Attributes:
        data: the runs and the options of the entry to a tidy frame, one row per point.
        draw: that frame, as it was written and read again, to a picture in the common style.
        checks: that frame to what holds of the paper's claims.
    """

    data: Callable[[Sequence[Run], Mapping[str, Any]], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Picture]
    checks: Callable[[pd.DataFrame], list[Check]]
