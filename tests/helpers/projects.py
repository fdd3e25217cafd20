"""Small projects of one's own, to run real workflows in."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import warm_calls

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS_OVER_ANOTHER = ("birds_long", "photographs_squeezenet", "room")
OVERLAYS = [
    path for path in sorted((ROOT / "params" / "overlays").glob("*.yaml")) if path.stem not in OVERLAYS_OVER_ANOTHER
]
PARTS = ("Snakefile", "workflow", "params", "profiles", "dvc.yaml", "environment.yml", ".dvc/config", ".dvcignore")
OVERLAY = """
name: own
datasets:
  pictures: {layout: folder, folder: pictures}
recipe:
  train:
    backbone: {name: tiny, weights: null, batch_norm: trained}
    embedding: {dim: 8}
    batch_size: 8
    image: {resize_px: 32, crop_px: 24, scale: [0.5, 1.0], ratio: [0.75, 1.333], flip: 0.5}
    test_image: {resize_px: 32, crop_px: 24}
    optimiser: {algorithm: adamw, lr: {trunk: 1.0e-3, head: 1.0e-3, proxies: 1.0e-2, boundaries: 1.0e-3}}
    budget: {epochs: 2, batches_per_epoch: 2, evaluate_every: 1, patience: null}
tables: [comparison]
tracking: false
resume_minutes: 0
"""


def committed(name: str) -> str:
    """Text of a committed result, which the pages are written from."""
    return (ROOT / "results" / "reference" / name).read_text()


@dataclass(frozen=True)
class Project:
    """A copy of the workflow with a folder of pictures."""

    root: Path

    def command(self, line: str) -> list[str]:
        return [str(Path(sys.executable).with_name("snakemake")), *line.split()]

    def run(self, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a call that prints what Snakemake prints: every job, with its files and reason."""
        return self.typed(f"--printshellcmds {line}", **environment)

    def typed(self, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a call as a person does, who sees what the project shows."""
        merged = {**os.environ, **environment}
        if "PYTHONPATH" in environment:  # with another package than the warm calls have imported
            return subprocess.run(
                self.command(line), cwd=self.root, capture_output=True, text=True, check=False, env=merged
            )
        return warm_calls.run(self.command(line), self.root, merged)

    def start(self, line: str) -> warm_calls.Call:
        """Start a call in a process group of its own."""
        return warm_calls.start(self.command(line), self.root, dict(os.environ))

    def kill(self, call: warm_calls.Call) -> None:
        """Kill a call with all it has started, as a dying machine would."""
        os.killpg(call.pid, signal.SIGKILL)
        call.wait()

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        (self.root / name).write_text(text.replace(old, new))


def path_in(params, file):
    """File below ``params/``; YAML if it is not named otherwise."""
    return params / (file if file.endswith(".csv") else f"{file}.yaml")


def spoil(path: Path, old: str, new: str) -> None:
    """Replace the first ``old`` in a file, which must be there."""
    text = path.read_text()
    assert old in text, f"{old!r} does not stand in {path}"
    path.write_text(text.replace(old, new, 1))


def make_project(root: Path) -> Project:
    for part in PARTS:
        source, target = ROOT / part, root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (root / "own.yaml").write_text(OVERLAY)
    generator = np.random.default_rng(0)
    for number in range(8):
        colour = generator.integers(60, 200, 3)
        folder = root / "pictures" / f"class{number}"
        folder.mkdir(parents=True)
        for place in range(6):
            noise = generator.integers(-50, 50, (32, 40, 3))
            Image.fromarray((colour + noise).astype(np.uint8)).save(folder / f"{place}.png")
    return Project(root)
