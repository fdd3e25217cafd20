"""Which trainings fit a time: in a fixed order, with equal budgets, and rather few methods than one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.text import human_seconds

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
)
SCHEDULE = "schedule.json"  # where a folder of results keeps what was chosen, for a call that goes on
RESERVE = 1.25  # of the measured time: cores share caches, and the last job waits for none
TRIALS = 3  # pairs of rates of which a method's own trials choose
SHARE_OF_TRIAL = 5  # a trial takes a fifth of the batches


@dataclass(frozen=True)
class Budget:
    """What every method gets.

    Attributes:
        batches: of a training.
        seeds: trainings of a method.
        trials: whether each method chooses its rates first.
        methods: fewest that must fit, so that this budget is taken.
    """

    batches: int
    seeds: int
    trials: bool
    methods: int


# The first that fits is taken. Two seeds decide next to nothing, and show what there is to gain.
BUDGETS = (
    Budget(1000, 3, True, 4),
    Budget(500, 3, True, 3),
    Budget(500, 3, False, 2),
    Budget(250, 3, False, 2),
    Budget(250, 3, False, 1),
    Budget(100, 3, False, 1),
    Budget(100, 2, False, 1),
)


@dataclass(frozen=True)
class Candidate:
    """A training that may fit.

    Attributes:
        label: of its row.
        step_s: seconds of a batch.
        fixed_s: seconds of a training beside its batches: to start, to search, and to score each of its rows.
        refused: why it cannot run on these pictures, if it cannot.
    """

    label: str
    step_s: float
    fixed_s: float
    refused: str = ""

    def seconds(self, budget: Budget) -> float:
        """Of all its seeds and trials, one after the other."""
        trials = TRIALS * (budget.batches // SHARE_OF_TRIAL * self.step_s + self.fixed_s) if budget.trials else 0.0
        return budget.seeds * (budget.batches * self.step_s + self.fixed_s) + trials


@dataclass(frozen=True)
class Schedule:
    """What is trained.

    Attributes:
        budget: of each method; ``None`` where nothing fits.
        chosen: labels of the methods.
        left_out: by label of the others, why.
        seconds: that all of it takes by what was measured.
    """

    budget: Budget | None
    chosen: tuple[str, ...]
    left_out: Mapping[str, str]
    seconds: float

    def as_data(self) -> dict[str, Any]:
        """As JSON takes it."""
        budget = None if self.budget is None else vars(self.budget)
        return {"budget": budget, "chosen": list(self.chosen), "left_out": dict(self.left_out), "seconds": self.seconds}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Schedule:
        """Of what `as_data` gave."""
        budget = None if data["budget"] is None else Budget(**data["budget"])
        return cls(budget, tuple(data["chosen"]), dict(data["left_out"]), float(data["seconds"]))


def after_first(
    schedule: Schedule, candidates: Sequence[Candidate], seconds: float, taken: float, workers: int
) -> Schedule:
    """What still fits after the first method, which took longer than was measured, or not.

    Args:
        schedule: before.
        candidates: as it was made of.
        seconds: that are left.
        taken: by the first method.
        workers: trainings that run side by side.
    """
    if schedule.budget is None:
        return schedule
    by_label = {each.label: each for each in candidates}
    first, *rest = (by_label[label] for label in schedule.chosen)
    slower = max(1.0, taken / _wall([first], schedule.budget, workers))
    kept: list[Candidate] = []
    for each in rest:
        if slower * _wall([*kept, each], schedule.budget, workers) <= seconds:
            kept.append(each)
    dropped = {each.label: slower * _wall([each], schedule.budget, workers) for each in rest if each not in kept}
    budgeted = f"for {schedule.budget.seeds} seeds of {schedule.budget.batches} batches"
    why = {
        label: f"takes {human_seconds(each)} {budgeted}, as the first method took; {human_seconds(max(seconds, 0.0))} "
        "were left"
        for label, each in dropped.items()
    }
    chosen = (first.label, *(each.label for each in kept))
    return Schedule(schedule.budget, chosen, {**why, **schedule.left_out}, schedule.seconds)


def in_order(labels: Sequence[str]) -> list[str]:
    """Labels as they are tried."""
    known = [label for label in ORDER if label in labels]
    return known + [label for label in labels if label not in known]


def fitting(
    candidates: Sequence[Candidate], seconds: float, *, workers: int = 1, may_try_rates: bool = True
) -> Schedule:
    """The trainings that fit.

    Of the budgets of `BUDGETS` the first is taken that enough methods fit; then methods in their order, each unless it
    is too long for what is left. Nothing here knows what a method reaches.

    Args:
        candidates: in the order in which they are tried.
        seconds: that are left.
        workers: trainings that run side by side.
        may_try_rates: whether there are classes enough for trials of rates.
    """
    possible = [each for each in candidates if not each.refused]
    budgets = [each for each in BUDGETS if may_try_rates or not each.trials]
    for budget in budgets:
        needed = min(budget.methods, len(possible))
        taken: list[Candidate] = []
        for each in possible:
            if _wall([*taken, each], budget, workers) <= seconds:
                taken.append(each)
        if taken and len(taken) >= needed:
            return Schedule(
                budget,
                tuple(each.label for each in taken),
                _why(candidates, taken, budget, workers),
                _wall(taken, budget, workers),
            )
    return Schedule(None, (), _why(candidates, [], BUDGETS[-1], workers, seconds), 0.0)


def _wall(taken: Sequence[Candidate], budget: Budget, workers: int) -> float:
    """Seconds on the clock: of all, shared among the workers, but no less than the longest training."""
    longest = max((budget.batches * each.step_s + each.fixed_s for each in taken), default=0.0)
    return RESERVE * max(sum(each.seconds(budget) for each in taken) / workers, longest)


def _why(
    candidates: Sequence[Candidate], taken: Sequence[Candidate], budget: Budget, workers: int, left: float | None = None
) -> dict[str, str]:
    """By label of what was not taken, the reason."""
    of_time = "" if left is None else f"; {human_seconds(max(left, 0.0))} were left"
    budgeted = f"for {budget.seeds} seeds of {budget.batches} batches"
    return {
        each.label: each.refused or f"takes {human_seconds(_wall([each], budget, workers))} {budgeted}{of_time}"
        for each in candidates
        if each not in taken
    }
