"""Methods that fit a time: in a fixed order, with equal budgets, and rather few methods than one seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lookalike.base.text import human_seconds

SCHEDULE = "schedule.json"  # where a folder of results keeps what is trained, for a call that goes on
RESERVE = 1.5  # of the measured time: jobs side by side share memory and caches, and the last one waits for none
# Rows of the table `comparison` in the order in which they are tried, whatever they reach: first one of each family,
# plain losses before methods that take more of a step. A row that is not named here comes last, in the table's order.
ORDER = (
    "ProxyAnchor",
    "Multi-Similarity",
    "ProxyAnchor-AVSL",
    "Contextual",
    "ProxyAnchor (average + maximum)",
    "Margin",
    "Triplet",
    "Margin-AVSL",
    "Triplet + SAM",
    "Margin (average + maximum, kaiming)",
    "ProxyAnchor (average + maximum, kaiming)",
    "Contrastive (GeM, kaiming, projector)",
)


class Budget(NamedTuple):
    """Budget of every method: batches of a training, seeds; and the fewest methods that must fit."""

    batches: int
    seeds: int
    methods: int


# The first that fits is taken. Two seeds decide next to nothing, and show what there is to gain.
BUDGETS = (
    Budget(1000, 3, 4),
    Budget(500, 3, 2),
    Budget(250, 3, 2),
    Budget(250, 3, 1),
    Budget(100, 3, 1),
    Budget(100, 2, 1),
)


class Candidate(NamedTuple):
    """A method that may fit.

    Attributes:
        label: of its first row.
        step_s: seconds of a batch.
        fixed_s: seconds of a training beside its batches: to start, to search, and to score each of its rows.
        refused: why it cannot run on these pictures, if it cannot.
    """

    label: str
    step_s: float
    fixed_s: float
    refused: str = ""


class Schedule(NamedTuple):
    """Trainings to make: the budget of each method, ``None`` where nothing fits, their labels, and why not others."""

    budget: Budget | None
    chosen: list[str]
    left_out: dict[str, str]


def fitting(candidates: Sequence[Candidate], seconds: float, *, workers: int = 1) -> Schedule:
    """The methods that fit a time, all with the same budget.

    Of the budgets of `BUDGETS` the first is taken that enough methods fit; then methods in their order, each unless it
    is too long for what is left. Nothing here knows what a method reaches.

    Args:
        candidates: in the order in which they are tried.
        seconds: that are left.
        workers: trainings that run side by side.
    """
    possible = [each for each in candidates if not each.refused]
    fits = ((each, _taken(possible, each, seconds, workers)) for each in BUDGETS)
    enough = ((budget, taken) for budget, taken in fits if len(taken) >= min(budget.methods, len(possible)) > 0)
    budget, taken = next(enough, (None, []))
    least = budget or BUDGETS[-1]
    left_out = {
        each.label: each.refused
        or f"takes {human_seconds(_clock([each], least, workers))} for {least.seeds} seeds of {least.batches} batches"
        for each in candidates
        if each not in taken
    }
    return Schedule(budget, [each.label for each in taken], left_out)


def _taken(candidates: Sequence[Candidate], budget: Budget, seconds: float, workers: int) -> list[Candidate]:
    taken: list[Candidate] = []
    for each in candidates:
        if _clock([*taken, each], budget, workers) <= seconds:
            taken.append(each)
    return taken


def _clock(taken: Sequence[Candidate], budget: Budget, workers: int) -> float:
    """Seconds on the clock: of all, shared among the workers, but no less than the longest training."""
    trainings = [budget.batches * each.step_s + each.fixed_s for each in taken]
    return RESERVE * max(budget.seeds * sum(trainings) / workers, *trainings)
