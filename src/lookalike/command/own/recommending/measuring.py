"""What a training from a network takes on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import torch

from lookalike.command.costs.hours import device_at_hand, kind_of, step_cost
from lookalike.command.own.recommending.work import DATASET, OfStart
from lookalike.data.manifest import read_manifest
from lookalike.data.pictures import read_picture
from lookalike.own.recommend.rows import UNTRAINED, Way, trainings_of
from lookalike.own.recommend.schedule import Candidate, in_order
from lookalike.paths import project_root
from lookalike.plan.needs import check_inputs
from lookalike.plan.plan import Plan
from lookalike.plan.results import timing_files
from lookalike.plan.timings import seconds
from lookalike.settings.layers import Tree
from lookalike.training.images import transform

LOADED = 16  # pictures
MEASURED_BESIDE = 8  # cores that are busy meanwhile, at most
STARTING_S = 2.0  # of a job, beside what it does


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
        train = plan.deciding(ways[0].recipe, DATASET, "train")["train"]
        if refused := _refusal(plan, ways[0].recipe):
            candidates.append(Candidate(label, 0.0, 0.0, refused))
            continue
        if kind_of(train) not in steps:
            steps[kind_of(train)] = _batch_seconds(part, plan, train, workers)
        scorings = [plan.deciding(way.recipe, DATASET)["evaluate"]["scoring"]["name"] for way in ways]
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


def _batch_seconds(part: OfStart, plan: Plan, train: Tree, workers: int) -> float:
    """Seconds of a batch: a measured step, and the loading of its pictures."""
    device = device_at_hand()[0]
    with _busy(0 if device.type == "cuda" else min(workers, MEASURED_BESIDE) - 1):
        step = step_cost(train, device)
    return float(step.of(int(train["batch_size"])) + train["batch_size"] * _loading_seconds(part, plan, train))


def _loading_seconds(part: OfStart, plan: Plan, train: Tree) -> float:
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
