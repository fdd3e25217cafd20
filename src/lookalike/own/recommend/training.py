"""The trainings behind a recommendation: which fit the time, and the workflow's calls that do them by an overlay."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lookalike.data.checksums import weights_digest
from lookalike.data.manifest import read_manifest
from lookalike.data.roles import LEFT_OUT
from lookalike.files import read_json, write_json, write_text
from lookalike.own.picture_files import pictures_in
from lookalike.own.recommend.classes import SCHEDULE, Classes
from lookalike.own.recommend.networks import Network
from lookalike.own.step_cost import kind_of, step_cost
from lookalike.parameters import Settings, merge, read
from lookalike.paths import project_root
from lookalike.plan.needs import check_inputs
from lookalike.plan.plan import Plan
from lookalike.plan.results import result_file, timing_files
from lookalike.plan.timings import seconds
from lookalike.running.devices import visible_devices
from lookalike.running.ending import Terminated
from lookalike.running.machine import job_device
from lookalike.text import counted, human_seconds

DATASET = "pictures"
BATCH, GROUP = 40, 20  # pictures of a batch, the comparison's own; a smaller one is a multiple of what samplers draw
PER_CLASS = 4
EPOCH = 50  # batches
STARTING_S = 2.0  # of a job, beside what it does
RESERVE = 1.5  # of the measured time: jobs side by side share memory and caches, and the last one waits for none
GOES_ON = "the same line goes on from there"
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


class Way(NamedTuple):
    """A row before it is measured: its label, and the name of its recipe."""

    label: str
    recipe: str


# Without training: as the last map is averaged, and with structural matching of its places (a point of the sweep
# `untrained_features`).
UNTRAINED = (
    Way("untrained", "untrained"),
    Way("untrained + structural matching", "untrained_features_diml_at_g_4"),
)


class Budget(NamedTuple):
    """What every method gets: batches of a training, seeds; and the fewest methods that must fit."""

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
    """What is trained: the budget of each method, ``None`` where nothing fits, their labels, and why not others."""

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


@dataclass(frozen=True)
class Work:
    """What starts from one network: an overlay, and results of its own.

    Attributes:
        classes: of the folder.
        network: at hand.
        folder: below ``results``, of all networks together.
    """

    classes: Classes
    network: Network
    folder: str

    @cached_property
    def name(self) -> str:
        """Of the overlay: another weights file means another one."""
        digest = hashlib.sha256(str(weights_digest(self.network.backbone["weights"])).encode()).hexdigest()[:4]
        return f"{self.folder}_{self.network.slug}_{digest}"

    @property
    def file(self) -> Path:
        """The overlay."""
        return project_root() / "results" / self.folder / f"{self.name}.yaml"

    @property
    def results(self) -> Path:
        """Folder of the results."""
        return project_root() / "results" / self.name

    @property
    def manifest(self) -> Path:
        """Of the split."""
        return project_root() / "data" / self.name / "splits" / f"{DATASET}.csv"

    @property
    def batch(self) -> int:
        """Pictures of a batch, as few as the training classes fill."""
        return min(BATCH, max(GROUP, PER_CLASS * len(self.classes.names("train")) // GROUP * GROUP))

    def overlay(self, budget: Budget | None = None) -> Settings:
        """What is laid over the comparison: pictures, network, batch, and where something is trained its budget."""
        links = project_root() / "data" / self.folder / "kept"
        view = self.network.view
        train: Settings = {"backbone": self.network.backbone, "batch_size": self.batch}
        train |= {"image": view, "test_image": view}
        overlay: Settings = {
            "name": self.name,
            "title": f"{self.classes.folder.resolve().name}, {self.network.name}, {view['crop_px']} px",
            "datasets": {DATASET: {"title": str(self.classes.folder), **self.classes.specification(links)}},
            "recipe": {"train": train},
            "tables": ["comparison"],
            "tracking": False,
        }
        if budget is not None:
            train["budget"] = _epochs(budget.batches)
            overlay["seeds"] = list(range(budget.seeds))
        return overlay

    def plan(self, budget: Budget | None = None) -> Plan:
        """What a call with the overlay would run."""
        return Plan(merge(read("params/config.yaml", "config"), self.overlay(budget)))

    def methods(self, plan: Plan) -> dict[str, list[Way]]:
        """By method, in the order in which they are tried, the rows of `comparison` that one training of it serves."""
        by_training: dict[str, list[Way]] = {}
        for row in plan.table("comparison")["rows"]:
            if not row.get("trivial"):
                shared = plan.shared("train", row["recipe"], DATASET)
                by_training.setdefault(shared, []).append(Way(row["label"], row["recipe"]))
        found = {ways[0].label: ways for ways in by_training.values()}
        return {label: found[label] for label in [*filter(found.get, ORDER), *found]}

    def make(self, files: Sequence[str], budget: Budget | None = None, *, cores: int) -> None:
        """Let the workflow make some files below the results, by the overlay that is written first.

        Raises:
            ValueError: if it fails; it has said why.
        """
        write_text(self.file, yaml.safe_dump(self.overlay(budget), sort_keys=False, allow_unicode=True))
        targets = [f"results/{self.name}/{file}" for file in files]
        call = [sys.executable, "-m", "snakemake", *targets, "--cores", str(cores)]
        call += ["--resources", f"gpu={max(1, len(visible_devices()))}", "--configfile", str(self.file)]
        with subprocess.Popen(call, cwd=project_root(), stdout=2) as process:
            try:
                status = process.wait()
            except KeyboardInterrupt:
                _end(process)
                raise
            except Terminated:  # which nobody but this call has heard
                process.terminate()
                process.wait()
                raise
        if status:
            raise ValueError(f"the workflow has failed, as said above; {GOES_ON}")


def works_of(classes: Classes, networks: Sequence[Network], *, size_px: int) -> list[Work]:
    """The work on some classes, by network: of the same pictures and options always the same, so that a killed call
    goes on.
    """
    asked = f"{classes.folder.resolve()} {classes.most} {size_px} {pictures_in(classes.folder)}"
    digest = hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "_", classes.folder.resolve().name.lower()).strip("_")
    return [Work(classes, each, f"own_{slug or 'pictures'}_{digest}") for each in networks]


def measure_untrained(work: Work, cores: int) -> None:
    """Score a network as it is. What is there is not asked for again: a budget of trainings is none of it."""
    plan = work.plan()
    files = [result_file(plan, "evaluation", way.recipe, DATASET, 0) for way in UNTRAINED]
    if not all((work.results / file).is_file() for file in files):
        work.make(files, cores=cores)


def train(works: Sequence[Work], hours: float, until: float, cores: int) -> Schedule:
    """Train what fits from the first network; a later call of the same line goes on with what the first has chosen.

    Args:
        works: of all networks, whose untrained rows are there.
        hours: that were asked for.
        until: of `time.monotonic`, when they are over.
        cores: that are used.
    """
    work, kept = works[0], project_root() / "results" / works[0].folder / SCHEDULE
    asked: dict[str, Any] = {"hours": hours, "networks": [each.name for each in works]}
    if kept.is_file() and (before := read_json(kept))["asked"] == asked:
        schedule = Schedule(Budget(*before["budget"]), before["chosen"], before["left_out"])
    else:
        _tell(f"measuring a step of each kind of training from {work.network.name}")
        schedule = fitting(measured(work), until - time.monotonic(), workers=len(visible_devices()) or cores)
        if schedule.budget is None:  # which is not kept: a later call has the untrained rows already, and more time
            return schedule
        write_json(kept, {"asked": asked, **schedule._asdict()})
    plan, budget = work.plan(schedule.budget), schedule.budget
    assert budget is not None
    ways = [way for label in schedule.chosen for way in work.methods(plan)[label]]
    files = [result_file(plan, "evaluation", way.recipe, DATASET, seed) for way in ways for seed in range(budget.seeds)]
    said = f"{counted(budget.seeds, 'seed')} of {budget.batches} batches each"
    _tell(f"training {', '.join(schedule.chosen)}: {said}")
    work.make(files, budget, cores=cores)
    return schedule


def measured(work: Work) -> list[Candidate]:
    """The methods in the order in which they are tried, each with what it takes here.

    A step of each kind of training is measured; what a picture takes to load and a search to score is known from the
    untrained rows.
    """
    plan, steps = work.plan(), dict[Any, float]()
    rows = read_manifest(work.manifest)
    pictures = int((~rows["role"].isin(("train", LEFT_OUT))).sum())
    files = [timing_files(plan, way.recipe, DATASET, 0) for way in UNTRAINED]
    represented = seconds(work.results / files[0]["embed"]) or 0.0
    plain, structural = (
        sum(seconds(work.results / each[stage]) or 0.0 for stage in ("embed", "evaluate")) for each in files
    )
    candidates = []
    for label, ways in work.methods(plan).items():
        settings = plan.settings(ways[0].recipe, DATASET, "train")["train"]
        if refused := _refusal(plan, ways[0].recipe):
            candidates.append(Candidate(label, 0.0, 0.0, refused))
            continue
        kind, batch = kind_of(settings), int(settings["batch_size"])
        if kind not in steps:
            steps[kind] = step_cost(settings, job_device()).of(batch) + batch * represented / pictures
        scorings = [plan.settings(way.recipe, DATASET)["evaluate"]["scoring"]["name"] for way in ways]
        scored = sum(plain if each == "cosine" else structural for each in scorings)
        candidates.append(Candidate(label, steps[kind], STARTING_S + plain + scored))
    return candidates


def _refusal(plan: Plan, recipe: str) -> str:
    try:
        plan.check_run(recipe, DATASET)
        check_inputs(plan, [(recipe, DATASET)])
    except ValueError as error:
        return str(error)
    return ""


def _epochs(batches: int) -> Settings:
    """Searched once, at the end: nothing chooses an epoch."""
    epochs = max(1, batches // EPOCH)
    return {"epochs": epochs, "batches_per_epoch": batches // epochs, "evaluate_every": epochs}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a call that was interrupted too, from a terminal, or else end it."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.terminate()


def _tell(line: str) -> None:
    print(f"lookalike: {line}", file=sys.stderr, flush=True)
