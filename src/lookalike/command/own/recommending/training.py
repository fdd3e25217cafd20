"""The rows of a recommendation: networks as they are, and the trainings that fit the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.command.own.recommending.measuring import measured
from lookalike.command.own.recommending.work import DATASET, GRID, PER_CLASS, TRIAL_SEED, OfStart, Work
from lookalike.files import read_json, write_json
from lookalike.own.recommend.rows import UNTRAINED, Row, Training, Way, read_row, trainings_of
from lookalike.own.recommend.schedule import SCHEDULE, Candidate, Schedule, after_first, fitting, in_order
from lookalike.plan.plan import Plan
from lookalike.plan.rates import Kind, Trial, rates_file
from lookalike.plan.rates import kind_of as rates_kind_of
from lookalike.plan.results import result_file
from lookalike.running.devices import visible_devices
from lookalike.settings.layers import Tree
from lookalike.stages.rates import rates
from lookalike.text import counted

NO_TIME = "the time was over before a step of it was measured"


@dataclass(frozen=True)
class Chosen:
    """What is trained, from which network."""

    part: OfStart
    schedule: Schedule
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Found:
    """A row with what it was read from."""

    row: Row
    part: OfStart
    way: Way
    plan: Plan


def untrained(part: OfStart, cores: int) -> list[Found]:
    """Rows of a network as it is. What is there is not asked for again: a budget of trainings is none of theirs."""
    overlay = part.overlay()
    plan = part.plan(overlay)
    files = [result_file(plan, "evaluation", way.recipe, DATASET, 0) for way in UNTRAINED]
    if not all((part.results / file).is_file() for file in files):
        part.make(overlay, files, cores=cores)
    return [_found(part, plan, way, [0]) for way in UNTRAINED]


def chosen_trainings(work: Work, hours: float, until: float, cores: int) -> Chosen:
    """What fits, as the first call has found: a later one of the same line goes on with it."""
    kept = work.folder / SCHEDULE
    if kept.is_file() and (before := read_json(kept))["asked"] == _asked(work, hours):
        part = next(work.of(start) for start in work.starts if work.of(start).name == before["network"])
        candidates = tuple(Candidate(**each) for each in before["candidates"])
        return Chosen(part, Schedule.from_data(before["schedule"]), candidates)
    part = work.of(work.starts[0])
    if time.monotonic() >= until:
        labels = in_order([each.label for each in trainings_of(part.plan(part.overlay()), DATASET)])
        return Chosen(part, Schedule(None, (), dict.fromkeys(labels, NO_TIME), 0.0), ())
    _tell(f"measuring a step of each kind of training from {part.start.name}")
    candidates = tuple(measured(part, workers=_workers(cores)))
    classes = len(work.classes.names("train"))
    enough = PER_CLASS * (classes - -(-classes // 5)) >= part.batch
    left = until - time.monotonic()
    chosen = Chosen(part, fitting(candidates, left, workers=_workers(cores), may_try_rates=enough), candidates)
    if chosen.schedule.budget is not None:  # else a later call has the untrained rows already, and more time
        _keep(work, chosen, hours)
    return chosen


def train(work: Work, chosen: Chosen, hours: float, until: float, cores: int) -> Chosen:
    """Train the first method, then of the others what still fits; what was done by an earlier call is there."""
    part, schedule = chosen.part, chosen.schedule
    began = time.monotonic()
    _make_rows(part, schedule, schedule.chosen[:1], cores)
    now = time.monotonic()
    if len(schedule.chosen) > 1:
        schedule = after_first(schedule, chosen.candidates, until - now, now - began, _workers(cores))
        chosen = Chosen(part, schedule, chosen.candidates)
        _keep(work, chosen, hours)
    if len(schedule.chosen) > 1:
        _make_rows(part, schedule, schedule.chosen, cores)
    return chosen


def trained(chosen: Chosen) -> list[Found]:
    """Rows of what was trained."""
    part, budget = chosen.part, chosen.schedule.budget
    assert budget is not None
    plan = part.plan(part.overlay(budget))
    trainings = [each for each in trainings_of(plan, DATASET) if each.label in chosen.schedule.chosen]
    return [_found(part, plan, way, range(budget.seeds)) for each in trainings for way in each.ways]


def _make_rows(part: OfStart, schedule: Schedule, labels: Sequence[str], cores: int) -> None:
    """Let the workflow train methods, with rates of their own where there is time for trials."""
    budget = schedule.budget
    assert budget is not None
    overlay = part.overlay(budget)
    if not budget.trials:  # of an earlier call that had more time, and did not try them for every method
        rates_file(part.name).unlink(missing_ok=True)
    plan = part.plan(overlay)
    trainings = [each for each in trainings_of(plan, DATASET) if each.label in labels]
    if budget.trials:
        _choose_rates(part, overlay, plan, trainings, cores)
    ways = [way for each in trainings for way in each.ways]
    seeds = range(budget.seeds)
    files = [result_file(plan, "evaluation", way.recipe, DATASET, seed) for way in ways for seed in seeds]
    said = f"{counted(budget.seeds, 'seed')} of {budget.batches} batches each"
    _tell(f"training {', '.join(labels)}: {said}")
    part.make(overlay, files, cores=cores)


def _choose_rates(part: OfStart, overlay: Tree, plan: Plan, trainings: Sequence[Training], cores: int) -> None:
    """Try rates for what is trained, on training classes held out, and write what was chosen."""
    trials = []
    for each in trainings:
        recipe = each.ways[0].recipe
        kind = rates_kind_of(plan.settings(recipe, DATASET).train)
        assert isinstance(kind, Kind)
        trials += [Trial(kind, recipe, DATASET, number) for number in range(len(GRID))]
    files = [f"rates/{each.recipe}/{DATASET}/trial{each.number}-seed{TRIAL_SEED}.csv" for each in trials]
    part.make(overlay, files, cores=cores)
    histories = [str(part.results / file) for file in files]
    assert plan.rates is not None
    rates([tuple(each) for each in trials], plan.rates, histories=histories, output=str(rates_file(part.name)))


def _keep(work: Work, chosen: Chosen, hours: float) -> None:
    """Write what is trained, for a call that goes on."""
    content = {"asked": _asked(work, hours), "network": chosen.part.name, "schedule": chosen.schedule.as_data()}
    write_json(work.folder / SCHEDULE, {**content, "candidates": [vars(each) for each in chosen.candidates]})


def _asked(work: Work, hours: float) -> dict[str, Any]:
    return {"hours": hours, "networks": [work.of(start).name for start in work.starts]}


def _workers(cores: int) -> int:
    """Trainings that run side by side."""
    return len(visible_devices()) or cores


def _found(part: OfStart, plan: Plan, way: Way, seeds: Sequence[int]) -> Found:
    start, manifest = part.start.name, part.manifest
    row = read_row(plan, part.results, way, start=start, dataset=DATASET, seeds=seeds, manifest=manifest)
    return Found(row, part, way, plan)


def _tell(line: str) -> None:
    print(f"lookalike: {line}", file=sys.stderr, flush=True)
