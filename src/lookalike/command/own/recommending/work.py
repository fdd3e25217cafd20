"""Where the work of a recommendation lies, the overlays that it is made of, and the calls that do it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from lookalike.data.checksums import weights_digest
from lookalike.files import write_text
from lookalike.own.pictures import pictures_in
from lookalike.own.recommend.classes import Classes
from lookalike.own.recommend.schedule import SHARE_OF_TRIAL, Budget
from lookalike.own.recommend.starts import Start
from lookalike.paths import project_root
from lookalike.plan.plan import Plan
from lookalike.running.devices import visible_devices
from lookalike.running.ending import Terminated
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.settings.layers import Tree, merge

DATASET = "pictures"
BATCH, GROUP = 40, 20  # pictures of a batch, the comparison's own; a smaller one is a multiple of what samplers draw
PER_CLASS = 4
EPOCH = 50  # batches
TRIAL_SEED = 100  # that no row reports
GOES_ON = "the same line goes on from there"
# Pairs among which each method chooses where there is time; the first is the comparison's own.
GRID = (
    {"trunk": 1.0e-4, "head": 1.0e-3},
    {"trunk": 3.0e-5, "head": 1.0e-3},
    {"trunk": 1.0e-4, "head": 3.0e-4},
)


@dataclass(frozen=True)
class Work:
    """A folder's work: of the same pictures and options always the same, so that a killed call goes on.

    Attributes:
        classes: of the folder.
        starts: networks at hand.
        name: of the folder below ``results``.
    """

    classes: Classes
    starts: tuple[Start, ...]
    name: str

    @property
    def folder(self) -> Path:
        """What is written of all networks together."""
        return project_root() / "results" / self.name

    def of(self, start: Start) -> OfStart:
        """The part of one network."""
        return OfStart(self, start)


@dataclass(frozen=True)
class OfStart:
    """What starts from one network: an overlay, and the results of its own."""

    work: Work
    start: Start

    @cached_property
    def name(self) -> str:
        """Of the overlay: another weights file means another one."""
        digest = hashlib.sha256(str(weights_digest(self.start.backbone["weights"])).encode()).hexdigest()[:4]
        return f"{self.work.name}_{self.start.slug}_{digest}"

    @property
    def file(self) -> Path:
        """The overlay."""
        return self.work.folder / f"{self.name}.yaml"

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
        classes = len(self.work.classes.names("train"))
        return min(BATCH, max(GROUP, PER_CLASS * classes // GROUP * GROUP))

    def overlay(self, budget: Budget | None = None) -> Tree:
        """What is laid over the comparison: pictures, network, batch, and where something is trained its budget.

        Args:
            budget: of each method.
        """
        classes, start = self.work.classes, self.start
        links = project_root() / "data" / self.work.name / "kept"
        train: Tree = {"backbone": start.backbone, "batch_size": self.batch}
        train |= {"image": start.view, "test_image": start.view}
        overlay: Tree = {
            "name": self.name,
            "title": f"{classes.folder.resolve().name}, {start.name}, {start.view['crop_px']} px",
            "datasets": {DATASET: {"title": str(classes.folder), **classes.specification(links)}},
            "recipe": {"train": train},
            "tables": ["comparison"],
            "tracking": False,
        }
        if budget is not None:
            train["budget"] = _budget(budget.batches)
            overlay["seeds"] = list(range(budget.seeds))
            if budget.trials:
                trial = {"budget": _budget(budget.batches // SHARE_OF_TRIAL)}
                overlay["rates"] = {"grid": [dict(pair) for pair in GRID], "seeds": [TRIAL_SEED], "train": trial}
        return overlay

    def plan(self, overlay: Tree) -> Plan:
        """What a call with the overlay would run."""
        return Plan(merge(read("params/config.yaml", Configuration).dump(), overlay))

    def make(self, overlay: Mapping[str, Any], files: Sequence[str], *, cores: int) -> None:
        """Let the workflow make some results.

        Args:
            overlay: which is written first.
            files: below the results.
            cores: that it uses.

        Raises:
            ValueError: if it fails; it has said why.
        """
        write_text(self.file, yaml.safe_dump(dict(overlay), sort_keys=False, allow_unicode=True))
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


def work_of(classes: Classes, starts: Sequence[Start], *, size_px: int) -> Work:
    """The work on some classes."""
    stamps = pictures_in(classes.folder)
    asked = f"{classes.folder.resolve()} {classes.most} {size_px} {stamps}"
    digest = hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "_", classes.folder.resolve().name.lower()).strip("_")
    return Work(classes, tuple(starts), f"own_{slug or 'pictures'}_{digest}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a call that was interrupted too, from a terminal, or else end it."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.terminate()


def _budget(batches: int) -> Tree:
    """Searched once, at the end: nothing chooses an epoch."""
    epochs = max(1, batches // EPOCH)
    return {"epochs": epochs, "batches_per_epoch": batches // epochs, "evaluate_every": epochs}
