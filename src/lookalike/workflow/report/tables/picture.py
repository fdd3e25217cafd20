"""All gains of a page's tables as one picture: dots on a common scale, a line for each table and data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from statistics import fmean

from lookalike.workflow.report.tables.layout import PairedGain, ReaderTable, Section
from lookalike.workflow.report.tables.words import dataset_words

STEPS, MOST_TICKS = (1, 2, 5, 10, 20, 50, 100), 9


@dataclass(frozen=True)
class Line:
    """The gains of one table on one data set.

    Attributes:
        table: its name, for a link.
        words: paper, table and data set.
        metric: what the gains are of.
        gains: each over the row that it is held against.
        said: their number and means in words.
    """

    table: str
    words: str
    metric: str
    gains: Sequence[PairedGain]
    said: str


@dataclass(frozen=True)
class Picture:
    """Lines on a scale in points.

    Attributes:
        lines: in the order of the tables.
        ticks: round numbers from end to end of the scale.
    """

    lines: Sequence[Line]
    ticks: Sequence[int]

    def at(self, points: float) -> str:
        """Place of a number of points, in percent of the scale's width."""
        return f"{100 * (points - self.ticks[0]) / (self.ticks[-1] - self.ticks[0]):.2f}%"


def picture_of(tables: Sequence[ReaderTable]) -> Picture | None:
    """The picture of all tables with a gain of ours, ``None`` without any."""
    lines = [
        Line(
            table.name,
            f"{table.title.partition(':')[0]}, {_data_words(table, section)}",
            section.gains[0].metric,
            section.gains,
            _said(section.gains),
        )
        for table in tables
        for section in table.sections
        if section.gains
    ]
    if not lines:
        return None
    ends = [end for line in lines for gain in line.gains for end in (gain.ours, gain.low, gain.high, gain.printed)]
    known = [0.0, *(end for end in ends if end is not None)]
    step = next((each for each in STEPS if (max(known) - min(known)) / each < MOST_TICKS - 1), STEPS[-1])
    first = floor(min(known) / step)
    last = max(ceil(max(known) / step), first + 1)  # where no row gains anything, too
    return Picture(lines, range(step * first, step * last + step, step))


def _data_words(table: ReaderTable, section: Section) -> str:
    """The data set, with its stand-in where a table has several."""
    alone = [each.dataset for each in table.sections].count(section.dataset) == 1
    return dataset_words(section.dataset) if alone else section.heading


def _said(gains: Sequence[PairedGain]) -> str:
    """Means over the gains that are printed, or over all where none is."""
    both = [gain for gain in gains if gain.printed is not None] or gains
    words = f"{fmean(gain.ours for gain in both):+.1f}"
    if printed := [gain.printed for gain in both if gain.printed is not None]:
        words += f", print {fmean(printed):+.1f}"
    return f"{words} (mean of {len(both)})" if len(both) > 1 else words
