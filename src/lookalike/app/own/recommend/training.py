"""The trainings behind a recommendation: the networks at hand, their overlays, and the workflow's calls by these."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torchvision import models

from lookalike.app.own.arguments import MAPS, SHIPPED, check_size, given_weights
from lookalike.app.own.arguments import UNTRAINED as UNTRAINED_MODEL
from lookalike.app.own.models import CROP_PX, RESIZE_PX, last_map
from lookalike.app.own.picture_files import pictures_in
from lookalike.app.own.recommend.classes import Classes
from lookalike.app.own.recommend.schedule import ORDER, SCHEDULE, Budget, Candidate, Schedule, fitting
from lookalike.app.own.step_cost import kind_of, step_cost
from lookalike.base.checks import require_known
from lookalike.base.files import read_json, write_json, write_text
from lookalike.base.paths import project_root
from lookalike.base.text import counted, error_line, one_line
from lookalike.models.backbones import BACKBONES, Trunk, build_network
from lookalike.workflow.data.checksums import weights_digest
from lookalike.workflow.data.manifest import read_manifest
from lookalike.workflow.data.roles import LEFT_OUT
from lookalike.workflow.plan.needs import check_inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import result_file, timing_files
from lookalike.workflow.plan.timings import seconds
from lookalike.workflow.running.devices import visible_devices
from lookalike.workflow.running.ending import Terminated
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read, yaml_text
from lookalike.workflow.settings.layers import Tree, merge

DATASET = "pictures"
RCA, WHITENING = MAPS
BATCH, GROUP = 40, 20  # pictures of a batch, the comparison's own; a smaller one is a multiple of what samplers draw
PER_CLASS = 4
EPOCH = 50  # batches
LONGEST = 100  # letters of a name that a file's name bears, which has at most 255 bytes
STARTING_S = 2.0  # of a job, beside what it does
GOES_ON = "the same line goes on from there"
TINY = "tiny"  # the project's own, which has learned from drawings: of photographs it is measured if it is asked for
TINY_VIEW = {"resize_px": 64, "crop_px": 56}  # that it has learned from
CACHED = ("resnet50", "resnet18")  # looked for where torchvision keeps its weights


class Way(NamedTuple):
    """A row before it is measured.

    Attributes:
        label: of the row.
        recipe: its name.
        map: that ``lookalike fit`` fits for it, empty for none.
    """

    label: str
    recipe: str
    map: str = ""


# Without training: as the last map is averaged, after a linear map in closed form, and with structural matching of its
# places (a point of the sweep `untrained_features`), which takes longest.
AT_ONCE = (
    Way("untrained", "untrained"),
    Way("whitened", "untrained_whitened", WHITENING),
    Way("RCA", "untrained_relevant", RCA),
)
STRUCTURAL = Way("untrained + structural matching", "untrained_features_diml_at_g_4")
UNTRAINED = (*AT_ONCE, STRUCTURAL)


@dataclass(frozen=True)
class Network:
    """A network with weights.

    Attributes:
        name: that tables show; unique among those of a call.
        backbone: section ``train.backbone`` of recipes that start from it.
        view: ``resize_px`` and ``crop_px`` of its test pictures.
    """

    name: str
    backbone: dict[str, Any]
    view: dict[str, int]

    @property
    def model(self) -> str:
        """As ``lookalike search`` takes it, untrained."""
        name, weights = str(self.backbone["name"]), str(self.backbone["weights"])
        known = weights.isupper() or weights == str(SHIPPED.get(name))
        return f"{UNTRAINED_MODEL}{name}" + ("" if known else f"={weights}")

    @property
    def slug(self) -> str:
        """Its name as a part of names of files."""
        return slug(self.name)


@dataclass(frozen=True)
class Work:
    """Runs that start from one network: an overlay, and results of its own.

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

    def overlay(self, budget: Budget | None = None) -> Tree:
        """Settings laid over the comparison: pictures, network, batch, and where something is trained its budget."""
        links = project_root() / "data" / self.folder / "kept"
        view = self.network.view
        train: Tree = {"backbone": self.network.backbone, "batch_size": self.batch}
        train |= {"image": view, "test_image": view}
        title = one_line(str(self.classes.folder)) or DATASET
        overlay: Tree = {
            "name": self.name,
            "title": f"{one_line(self.classes.folder.resolve().name)}, {self.network.name}, {view['crop_px']} px",
            "datasets": {DATASET: {"title": title, **self.classes.specification(links)}},
            "recipe": {"train": train},
            "tables": ["comparison"],
            "tracking": False,
        }
        if budget is not None:
            train["budget"] = _epochs(budget.batches)
            overlay["seeds"] = list(range(budget.seeds))
        return overlay

    def plan(self, budget: Budget | None = None) -> Plan:
        """Plan of a call with the overlay."""
        return Plan(merge(read("params/config.yaml", Configuration).dump(), self.overlay(budget)))

    def methods(self, plan: Plan) -> dict[str, list[Way]]:
        """By method, in the order in which they are tried, the rows of `comparison` that one training of it serves."""
        by_training: dict[str, list[Way]] = {}
        for row in plan.table("comparison").rows:
            if not row.trivial:
                shared = plan.shared("train", row.recipe, DATASET)
                by_training.setdefault(shared, []).append(Way(row.label, row.recipe))
        found = {ways[0].label: ways for ways in by_training.values()}
        return {label: found[label] for label in [*filter(found.get, ORDER), *found]}

    def make(self, files: Sequence[str], budget: Budget | None = None, *, cores: int) -> None:
        """Let the workflow make some files below the results, by the overlay that is written first.

        Raises:
            ValueError: if it fails; it has said why.
        """
        write_text(self.file, yaml_text(self.overlay(budget)))
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


def networks_at_hand(given: Sequence[str], *, size_px: int) -> list[Network]:
    """Networks in the order in which training is tried from them: as given, torchvision's cached ones, `SHIPPED`.

    Args:
        given: ``NAME=FILE`` each, a classifier of torchvision or `TINY` with weights in torchvision's layout.
        size_px: side of the pictures of all but `TINY`.

    Raises:
        ValueError: for another form, an unknown network, a file that is not there, or weights that do not fit.
    """
    check_size(size_px)
    view = {"resize_px": round(size_px * RESIZE_PX / CROP_PX), "crop_px": size_px}
    found: dict[str, Network] = {}
    for text in given:
        name, file = given_weights(text)
        require_known("--weights", name, {*BACKBONES, *models.list_models(models)})
        path = file.absolute()
        backbone = _backbone(name, str(path))
        Trunk(**backbone)  # so that a file of another network is refused now
        numbered = (f"{name} ({path.stem}, {number})" for number in range(2, len(found) + 2))
        free = next(each for each in (name, f"{name} ({path.stem})", *numbered) if each not in found)
        found[free] = Network(free, backbone, TINY_VIEW if name == TINY else view)
    named = {each.backbone["name"] for each in found.values()}
    cached = [Network(name, _backbone(name, "IMAGENET1K_V1"), view) for name in CACHED if _is_cached(name)]
    others = [*cached, *(Network(name, _backbone(name, str(file)), view) for name, file in SHIPPED.items())]
    return [*found.values(), *(each for each in others if each.name not in named)]


def usable(networks: Sequence[Network]) -> tuple[list[Network], dict[str, str]]:
    """Networks whose weights can be read, and by the name of each other one why not, as of a broken download."""
    found, refused = list[Network](), dict[str, str]()
    for network in networks:
        try:
            Trunk(**network.backbone)
            found.append(network)
        except (OSError, ValueError) as error:
            refused[network.name] = error_line(error)
            tell(f"{network.name} is left out: {refused[network.name]}")
    return found, refused


def _backbone(name: str, weights: str) -> dict[str, Any]:
    stages = {} if name in BACKBONES else {"stages": [last_map(build_network(name))]}
    return {"name": name, "weights": weights, "batch_norm": "frozen", **stages}


def _is_cached(name: str) -> bool:
    url = str(models.get_model_weights(name)["IMAGENET1K_V1"].url)
    return (Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]).is_file()


def slug(name: str) -> str:
    """A name as a part of names of files."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST]


def works_of(classes: Classes, networks: Sequence[Network], *, size_px: int) -> list[Work]:
    """The work on some classes, by network: of the same pictures and options always the same, so that a killed call
    goes on.
    """
    asked = f"{classes.folder.resolve()} {classes.most} {size_px} {pictures_in(classes.folder)}"
    digest = hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    folder = f"own_{slug(classes.folder.resolve().name) or 'pictures'}_{digest}"
    return [Work(classes, each, folder) for each in networks]


def measure_untrained(work: Work, ways: Sequence[Way], cores: int) -> None:
    """Score a network as it is. What is there is not asked for again: a budget of trainings is none of it."""
    plan = work.plan()
    files = [result_file(plan, "evaluation", way.recipe, DATASET, 0) for way in ways]
    if not all((work.results / file).is_file() for file in files):
        work.make(files, cores=cores)


def train(works: Sequence[Work], hours: float, until: float, cores: int) -> Schedule:
    """Train the methods that fit, from the first network; a later call of the same line keeps the first one's choice.

    Args:
        works: of all networks, whose untrained rows are there.
        hours: that were asked for.
        until: of `time.monotonic`, when they are over.
        cores: that are used.
    """
    work, kept = works[0], project_root() / "results" / works[0].folder / SCHEDULE
    asked: dict[str, Any] = {"hours": hours, "networks": [each.name for each in works]}
    schedule = _kept_schedule(kept, asked) if kept.is_file() else None
    if schedule is None:
        tell(f"measuring a step of each kind of training from {work.network.name}")
        schedule = fitting(measured(work), until - time.monotonic(), workers=len(visible_devices()) or cores)
        if schedule.budget is None:  # which is not kept: a later call has the untrained rows already, and more time
            return schedule
        write_json(kept, {"asked": asked, **schedule._asdict()})
    plan, budget = work.plan(schedule.budget), schedule.budget
    assert budget is not None
    ways = [way for label in schedule.chosen for way in work.methods(plan)[label]]
    files = [result_file(plan, "evaluation", way.recipe, DATASET, seed) for way in ways for seed in range(budget.seeds)]
    said = f"{counted(budget.seeds, 'seed')} of {budget.batches} batches each"
    tell(f"training {', '.join(schedule.chosen)}: {said}")
    work.make(files, budget, cores=cores)
    return schedule


def _kept_schedule(file: Path, asked: Mapping[str, Any]) -> Schedule | None:
    """Schedule of an earlier call of the same line, ``None`` of another one; a file that holds none is told."""
    try:
        before = read_json(file)
        same = before["asked"] == asked
        return Schedule(Budget(*before["budget"]), before["chosen"], before["left_out"]) if same else None
    except (LookupError, OSError, TypeError, ValueError) as error:
        tell(f"{file} is no schedule of an earlier call ({error}), methods are chosen anew")
        return None


def measured(work: Work) -> list[Candidate]:
    """The methods in the order in which they are tried, each with its seconds on this machine.

    A step of each kind of training is measured; what a picture takes to load and a search to score is known from the
    untrained rows.
    """
    plan, steps = work.plan(), dict[Any, float]()
    rows = read_manifest(work.manifest)
    pictures = int((~rows["role"].isin(("train", LEFT_OUT))).sum())
    files = [timing_files(plan, way.recipe, DATASET, 0) for way in (AT_ONCE[0], STRUCTURAL)]
    represented = seconds(work.results / files[0]["evaluate"], "embed_s") or 0.0
    plain, structural = (seconds(work.results / each["evaluate"]) or 0.0 for each in files)
    candidates = []
    for label, ways in work.methods(plan).items():
        if refused := _refusal(plan, ways[0].recipe):
            candidates.append(Candidate(label, 0.0, 0.0, refused))
            continue
        recipes = [plan.settings(way.recipe, DATASET) for way in ways]
        train = recipes[0].train
        kind, batch = kind_of(train), train.batch_size
        if kind not in steps:
            steps[kind] = step_cost(train, job_device()).of(batch) + batch * represented / pictures
        scored = sum(plain if each.evaluate.scoring.name == "cosine" else structural for each in recipes)
        candidates.append(Candidate(label, steps[kind], STARTING_S + plain + scored))
    return candidates


def _refusal(plan: Plan, recipe: str) -> str:
    try:
        plan.check_run(recipe, DATASET)
        check_inputs(plan, [(recipe, DATASET)])
    except ValueError as error:
        return str(error)
    return ""


def _epochs(batches: int) -> Tree:
    """Searched once, at the end: nothing chooses an epoch."""
    epochs = max(1, batches // EPOCH)
    return {"epochs": epochs, "batches_per_epoch": batches // epochs, "evaluate_every": epochs}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a call that was interrupted too, from a terminal, or else end it."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.terminate()


def tell(line: str) -> None:
    """Say how far a call is."""
    print(f"lookalike: {line}", file=sys.stderr, flush=True)
