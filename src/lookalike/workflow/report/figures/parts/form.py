"""Parts of a figure: a function that computes its data, one that draws them, one that checks the claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lookalike.workflow.report.statistics.decisions import MARGIN
from lookalike.workflow.settings.model import Model

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
        layout: of its files, a key of ``lookalike.workflow.data.readers.READERS``.
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

    What differs from training to training is a number per seed, so taken that the claim is a mean above zero, or
    several such; `lookalike.workflow.report.figures.parts.caption` decides all checks together.

    Attributes:
        says: what is said and what was found, with its numbers.
        holds: whether it is so, where no seed is asked: by a formula, or as measured once; ``None`` for all others.
        claimed: whether anything is.
        measured: whether it was; what is claimed and was not run is said so.
        cases: a number per seed of each case, in groups, ``(G, K, S)`` as for
        `lookalike.workflow.report.statistics.cases.Cases`:
            claimed is that of one group all are above zero. Most often there is a single case.
        needed: where it is claimed of so many of a single group, and of their mean.
        unit: of the numbers, which says what they are where they are no plain differences.
        margin: below which, either way, the mean counts as small; 0 where no size counts so.
    """

    says: str
    holds: bool | None = None
    claimed: bool = True
    measured: bool = True
    cases: Sequence[Sequence[Sequence[float]]] = ()
    needed: int | None = None
    unit: str = "points"
    margin: float = MARGIN


class NoOptions(Model):
    """Of a figure that has none."""


@dataclass(frozen=True)
class Figure:
    """The functions behind one figure.

    Attributes:
        data: the runs and the options of the entry, a model of its own, to a tidy frame, one row per point.
        draw: that frame, as it was written and read again, to a picture in the common style.
        checks: that frame to what holds of the paper's claims.
        example: whether the picture is of the first seed, as pictures and maps are of one model; numbers are of all.
    """

    data: Callable[[Sequence[Run], Any], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Picture]
    checks: Callable[[pd.DataFrame], list[Check]]
    example: bool = False
