"""How long finished jobs took, as Snakemake measured them, and what a single picture takes, as their stages did."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lookalike.files import read_json, write_json

# What is done sooner is mostly the start of libraries, and done again, so often at most.
SHORT_S, PASSES = 0.25, 5
T = TypeVar("T")


def timing_pattern(stage: str) -> str:
    """Benchmark files of a stage below ``results/<scale>``, with ``{recipe}``, ``{dataset}`` and ``{seed}``."""
    return f"timings/{stage}/{{recipe}}-{{dataset}}-seed{{seed}}.tsv"


def seconds(path: Path | str) -> float | None:
    """Seconds that a job took, ``None`` where nobody has measured it, or the file was cut off before its numbers."""
    if not Path(path).is_file():
        return None
    with Path(path).open(encoding="utf-8") as stream:
        row = next(csv.DictReader(stream, delimiter="\t"), None)
    return float(row["s"]) if row else None


def warm_file(stage: str, result: Path | str) -> str:
    """Beside the benchmark of a stage, what a picture takes; ``result`` is what the stage leaves of the run."""
    *folder, _, recipe, dataset, _ = Path(result).parts
    named = {"recipe": recipe, "dataset": dataset, "seed": Path(result).stem.removeprefix("seed")}
    return _warm(Path(*folder, timing_pattern(stage).format(**named)))


def warm_seconds(action: Callable[[], T], file: str) -> tuple[T, float]:
    """What an action gives, and the seconds that it takes once all that it needs is loaded.

    Args:
        action: gives the same each time.
        file: that the seconds are for, as of `write_warm`; without one it is done once.
    """
    passes: list[float] = []
    while not passes or (file and len(passes) < PASSES and sum(passes) < SHORT_S):
        began = time.perf_counter()
        found = action()
        passes.append(time.perf_counter() - began)
    return found, min(passes)


def write_warm(file: str, seconds: float) -> None:
    """Leave what a picture takes; nothing where no file is named."""
    if file:
        write_json(file, {"ms": 1000 * seconds})


def warm_ms(timing: Path | str) -> float | None:
    """Milliseconds that a stage takes for a picture, ``None`` where it has not measured them."""
    return float(read_json(file)["ms"]) if Path(file := _warm(timing)).is_file() else None


def _warm(timing: Path | str) -> str:
    return str(Path(timing).with_suffix(".json"))
