"""What ``lookalike recommend`` does: measure untrained networks, train what fits the time, and say what to take."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import torch

from lookalike.command.costs.hours import device_at_hand, kind_of, step_cost
from lookalike.command.own.work import (
    DATASET,
    GOES_ON,
    GRID,
    PER_CLASS,
    TRIAL_SEED,
    OfStart,
    Work,
    cores_at_hand,
    work_of,
)
from lookalike.data.manifest import read_manifest
from lookalike.data.pictures import read_picture
from lookalike.data.roles import LEFT_OUT
from lookalike.files import read_json, write_json, write_text
from lookalike.own.recommend.classes import read_classes
from lookalike.own.recommend.confusion import Pair, confused
from lookalike.own.recommend.page import Report, data, page, text
from lookalike.own.recommend.rows import UNTRAINED, Row, Training, Way, read_row, trainings_of
from lookalike.own.recommend.schedule import SHARE_OF_TRIAL, Candidate, Schedule, after_first, fitting, in_order
from lookalike.own.recommend.starts import starts_at_hand
from lookalike.own.recommend.verdict import Case, recommend
from lookalike.parameters import Settings
from lookalike.paths import project_root
from lookalike.plan.needs import check_inputs
from lookalike.plan.plan import Plan
from lookalike.plan.rates import Kind, Trial, rates_file
from lookalike.plan.rates import kind_of as rates_kind_of
from lookalike.plan.results import result_file, timing_files
from lookalike.plan.timings import seconds
from lookalike.running.devices import visible_devices
from lookalike.stages.rates import rates
from lookalike.text import counted, human_seconds
from lookalike.training.images import transform

SIZE_PX, SIZE_PX_GPU = 128, 224
LOADED = 16  # pictures
MEASURED_BESIDE = 8  # cores that are busy meanwhile, at most
STARTING_S = 2.0  # of a job, beside what it does
NO_TIME = "the time was over before a step of it was measured"
PAGE, SCHEDULE = "recommendation.html", "schedule.json"


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


def print_recommendation(
    folder: Path,
    *,
    hours: float = 0.5,
    pictures_per_class: int | None = None,
    weights: Sequence[str] = (),
    size_px: int | None = None,
    cores: int | None = None,
    out: Path | None = None,
) -> None:
    """Measure, print what to take, and write it as a page and JSON.

    Args:
        folder: of pictures, with a folder per class.
        hours: that all of it may take.
        pictures_per_class: that take part, ``None`` for all.
        weights: of networks, ``NAME=FILE`` each.
        size_px: side of the pictures.
        cores: that are used, ``None`` for all.
        out: the page; by default among the results.

    Raises:
        ValueError: in one line, for a folder that is too small or of another form, weights that cannot be used, or
            hours, sizes or names that cannot be.
    """
    if out is not None and out.suffix != ".html":
        raise ValueError(f"--out {out}: the page is an .html file; the JSON lies beside it")
    options: dict[str, Any] = {"pictures_per_class": pictures_per_class, "weights": weights, "size_px": size_px}
    try:
        report, written = report_of(folder, hours=hours, cores=cores, **options)
    except KeyboardInterrupt:
        raise ValueError(f"stopped; {GOES_ON}") from None
    place = out or written / PAGE
    write_text(place, page(report))
    write_json(place.with_suffix(".json"), data(report))
    print(text(report))
    print(f"\n{_shown(place)}, {_shown(place.with_suffix('.json'))}")


def report_of(
    folder: Path,
    *,
    hours: float = 0.5,
    pictures_per_class: int | None = None,
    weights: Sequence[str] = (),
    size_px: int | None = None,
    cores: int | None = None,
) -> tuple[Report, Path]:
    """The recommendation and the folder of its work; arguments and errors as of `print_recommendation`."""
    began = time.monotonic()
    if not hours > 0:
        raise ValueError(f"--hours {hours:g}: it takes time above 0")
    if cores is not None and cores < 1:
        raise ValueError(f"--cores {cores}: at least 1 is needed")
    classes = read_classes(folder, most=pictures_per_class)
    size = (SIZE_PX_GPU if visible_devices() else SIZE_PX) if size_px is None else size_px
    work = work_of(classes, starts_at_hand(weights, size_px=size), size_px=size)
    cores = cores or cores_at_hand()
    rows = [row for start in work.starts for row in _untrained(work.of(start), cores)]
    until = began + 3600 * hours
    chosen = _chosen(work, hours, until, cores)
    if chosen.schedule.budget is not None:
        chosen = _train(work, chosen, hours, until, cores)
        rows += _trained(chosen)
    recommendation = recommend([each.row for each in rows])
    found = next(each for each in rows if each.row is recommendation.row)
    stored = [
        found.part.results / result_file(found.plan, kind, found.way.recipe, DATASET, 0)
        for kind in ("model", "embeddings")
    ]
    pairs = confused(found.plan.settings(found.way.recipe, DATASET)["evaluate"], *stored)
    pictures = project_root() / found.plan.datasets[DATASET].root
    lines = _lines(found, pictures, pairs)
    if recommendation.case in (Case.UNDECIDED, Case.NOT_TRAINED):
        options = [*(f"--weights {shlex.quote(each)}" for each in weights), f"--hours {4 * hours:g}"]
        options += [f"--pictures-per-class {pictures_per_class}"] * (pictures_per_class is not None)
        options += [f"--size {size_px}"] * (size_px is not None)
        lines.append(f"lookalike recommend {shlex.quote(str(folder))} {' '.join(options)}")
    report = Report(
        str(folder), recommendation, pairs, pictures, chosen.schedule.left_out, _terms(work, chosen, hours), lines
    )
    return report, work.folder


def _untrained(part: OfStart, cores: int) -> list[Found]:
    """Rows of a network as it is. What is there is not asked for again: a budget of trainings is none of theirs."""
    overlay = part.overlay()
    plan = part.plan(overlay)
    files = [result_file(plan, "evaluation", way.recipe, DATASET, 0) for way in UNTRAINED]
    if not all((part.results / file).is_file() for file in files):
        part.make(overlay, files, cores=cores)
    return [_found(part, plan, way, [0]) for way in UNTRAINED]


def _train(work: Work, chosen: Chosen, hours: float, until: float, cores: int) -> Chosen:
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


def _trained(chosen: Chosen) -> list[Found]:
    part, budget = chosen.part, chosen.schedule.budget
    assert budget is not None
    plan = part.plan(part.overlay(budget))
    trainings = [each for each in trainings_of(plan, DATASET) if each.label in chosen.schedule.chosen]
    return [_found(part, plan, way, range(budget.seeds)) for each in trainings for way in each.ways]


def _choose_rates(part: OfStart, overlay: Settings, plan: Plan, trainings: Sequence[Training], cores: int) -> None:
    """Try rates for what is trained, on training classes held out, and write what was chosen."""
    trials = []
    for each in trainings:
        recipe = each.ways[0].recipe
        kind = rates_kind_of(plan.settings(recipe, DATASET, "train")["train"])
        assert isinstance(kind, Kind)
        trials += [Trial(kind, recipe, DATASET, number) for number in range(len(GRID))]
    files = [f"rates/{each.recipe}/{DATASET}/trial{each.number}-seed{TRIAL_SEED}.csv" for each in trials]
    part.make(overlay, files, cores=cores)
    histories = [str(part.results / file) for file in files]
    rates([tuple(each) for each in trials], plan.rates, histories=histories, output=str(rates_file(part.name)))


def _chosen(work: Work, hours: float, until: float, cores: int) -> Chosen:
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


def _keep(work: Work, chosen: Chosen, hours: float) -> None:
    """Write what is trained, for a call that goes on."""
    content = {"asked": _asked(work, hours), "network": chosen.part.name, "schedule": chosen.schedule.as_data()}
    write_json(work.folder / SCHEDULE, {**content, "candidates": [vars(each) for each in chosen.candidates]})


def _asked(work: Work, hours: float) -> dict[str, Any]:
    return {"hours": hours, "networks": [work.of(start).name for start in work.starts]}


def _workers(cores: int) -> int:
    """Trainings that run side by side."""
    return len(visible_devices()) or cores


def measured(part: OfStart, *, workers: int = 1) -> list[Candidate]:
    """The trainings from a network in the order in which they are tried, each with what it takes here.

    A step of each kind of training is measured, with as many cores busy as trainings will run side by side; what
    a search takes is known from the untrained rows.
    """
    plan = part.plan(part.overlay())
    trainings = {each.label: each for each in trainings_of(plan, DATASET)}
    own = {way.recipe: _seconds_of(part, plan, way) for way in UNTRAINED}
    plain, structural = (own[way.recipe] for way in UNTRAINED)
    steps: dict[Any, float] = {}
    candidates = []
    for label in in_order(list(trainings)):
        ways = trainings[label].ways
        train = plan.settings(ways[0].recipe, DATASET, "train")["train"]
        if refused := _refusal(plan, ways[0].recipe):
            candidates.append(Candidate(label, 0.0, 0.0, refused))
            continue
        if kind_of(train) not in steps:
            steps[kind_of(train)] = _batch_seconds(part, plan, train, workers)
        scorings = [plan.settings(way.recipe, DATASET)["evaluate"]["scoring"]["name"] for way in ways]
        scored = sum(plain if each == "cosine" else structural for each in scorings)
        candidates.append(Candidate(label, steps[kind_of(train)], STARTING_S + plain + scored))
    return candidates


def _refusal(plan: Plan, recipe: str) -> str:
    try:
        plan.check_run(recipe, DATASET)
        check_inputs(plan, [(recipe, DATASET)])
    except ValueError as error:
        return str(error)
    return ""


def _seconds_of(part: OfStart, plan: Plan, way: Way) -> float:
    """What representing and scoring an untrained row took."""
    files = timing_files(plan, way.recipe, DATASET, 0)
    return sum(seconds(part.results / files[stage]) or 0.0 for stage in ("embed", "evaluate"))


def _batch_seconds(part: OfStart, plan: Plan, train: Settings, workers: int) -> float:
    """Seconds of a batch: a measured step, and the loading of its pictures."""
    device = device_at_hand()[0]
    with _busy(0 if device.type == "cuda" else min(workers, MEASURED_BESIDE) - 1):
        step = step_cost(train, device)
    return float(step.of(int(train["batch_size"])) + train["batch_size"] * _loading_seconds(part, plan, train))


def _loading_seconds(part: OfStart, plan: Plan, train: Settings) -> float:
    """Seconds to make an image of a picture that has been decoded before."""
    rows = read_manifest(part.manifest)
    paths = rows.loc[rows["role"] == "train", "path"].iloc[:LOADED]
    root = project_root() / plan.datasets[DATASET].root
    side, load = 2 * int(train["image"]["crop_px"]), transform(train["test_image"])
    pictures = [read_picture(root / path).resize((side, side)) for path in paths]
    began = time.perf_counter()
    for picture in pictures:
        load(picture)
    return (time.perf_counter() - began) / len(pictures)


@contextmanager
def _busy(threads: int) -> Iterator[None]:
    """Keep some cores at work, as trainings side by side do; networks themselves cannot be built by threads."""
    done = Event()

    def work() -> None:
        maps, weights = torch.randn(8, 32, 56, 56), torch.randn(32, 32, 3, 3)
        while not done.is_set():
            torch.nn.functional.conv2d(maps, weights)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        for _ in range(threads):
            pool.submit(work)
        try:
            yield
        finally:
            done.set()


def _tell(line: str) -> None:
    print(f"lookalike: {line}", file=sys.stderr, flush=True)


def _found(part: OfStart, plan: Plan, way: Way, seeds: Sequence[int]) -> Found:
    start, manifest = part.start.name, part.manifest
    row = read_row(plan, part.results, way, start=start, dataset=DATASET, seeds=seeds, manifest=manifest)
    return Found(row, part, way, plan)


def _terms(work: Work, chosen: Chosen, hours: float) -> list[str]:
    """How it was done, a sentence each."""
    rows = read_manifest(work.of(work.starts[0]).manifest)
    left_out = int((rows["role"] == LEFT_OUT).sum())
    networks = ", ".join(f"{each.name} at {each.view['crop_px']} px" for each in work.starts)
    said = [work.classes.rule, *work.classes.notes]
    if left_out:
        said.append(f"{counted(left_out, 'picture')} cannot be read or lie in two classes, and took no part.")
    said.append(f"Networks at hand: {networks}; each untrained, by cosine and with structural matching (DIML).")
    budget = chosen.schedule.budget
    if budget is None:
        return [*said, f"Nothing was trained: no method fits {human_seconds(3600 * hours)}, of 2 seeds of 100 batches."]
    part = chosen.part
    train = part.plan(part.overlay(budget)).settings("compared_proxy_anchor", DATASET, "train")["train"]
    rest = "; ".join(f"{name} {value:g}" for name, value in train["optimiser"]["lr"].items())
    said.append(
        f"Trained from {part.start.name}, the first of them: {', '.join(chosen.schedule.chosen)}, "
        f"in a fixed order that no result moves; each {budget.seeds} seeds of {budget.batches} batches of "
        f"{part.batch} pictures, in {human_seconds(3600 * hours)} at most by what was measured before."
    )
    said.append("Scored after the last batch; neither an epoch nor a seed was chosen.")
    if budget.trials:
        said.append(
            f"Rates of trunk and head: of {len(GRID)} pairs the best in a trial of each method, of "
            f"{budget.batches // SHARE_OF_TRIAL} batches, on the last fifth of the training classes (params/rates)."
        )
    else:
        said.append(f"Rates are the comparison's own, not tuned to these pictures: {rest}.")
    return said


def _lines(found: Found, pictures: Path, pairs: Sequence[Pair]) -> list[str]:
    """What can be typed next with the recommended row."""
    folder = found.part.work.classes.folder
    if found.row.trained:
        name, options = f"{found.way.recipe}@{DATASET}", f"--configfile {shlex.quote(_shown(found.part.file))}"
    else:
        name, options = shlex.quote(found.part.start.model), f"--size {found.part.start.view['crop_px']}"
    rows = read_manifest(found.part.manifest)
    first = str(rows.loc[rows["role"].isin(("test", "query")), "path"].iloc[0])
    query = _quoted(pictures / (pairs[0].query if pairs else first))
    by, method = (" --by structure", " --method structure") if found.row.structural else ("", "")
    lines = [f"lookalike search {name} {query} --in {_quoted(folder)} --out found.html{by} {options}"]
    if pairs:
        match = _quoted(pictures / pairs[0].match)
        lines.append(f"lookalike explain {name} {query} {match} --out why{method} {options}")
    return lines


def _quoted(path: Path) -> str:
    return shlex.quote(_shown(path.resolve()))


def _shown(path: Path) -> str:
    """A path as it is typed here: relative where it lies below."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100  (links stay)
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(whole)
