"""Times of finished jobs, as Snakemake measured them, and of evaluations and queries, as their stage did."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lookalike.base.files import replacing

# What is done sooner is mostly the start of libraries, and done again, so often at most.
SHORT_S, PASSES = 0.25, 5
T = TypeVar("T")


def timing_pattern(stage: str) -> str:
    """Benchmark files of a stage below ``results/<scale>``, with ``{recipe}``, ``{dataset}`` and ``{seed}``."""
    return f"timings/{stage}/{{recipe}}-{{dataset}}-seed{{seed}}.tsv"


def seconds(path: Path | str, part: str = "s") -> float | None:
    """Seconds that a job took, or another ``part`` of its file; ``None`` where that is missing or was cut off."""
    if not Path(path).is_file():
        return None
    with Path(path).open(encoding="utf-8") as stream:
        row = next(csv.DictReader(stream, delimiter="\t"), None)
    return float(row[part]) if row and row.get(part) else None


def warm_seconds(action: Callable[[], T], *, repeated: bool) -> tuple[T, float]:
    """Result of an action, and its seconds once all that it needs is loaded.

    Args:
        action: gives the same each time.
        repeated: whether it is done again where it is short.
    """
    passes: list[float] = []
    while not passes or (repeated and len(passes) < PASSES and sum(passes) < SHORT_S):
        began = time.perf_counter()
        found = action()
        passes.append(time.perf_counter() - began)
    return found, min(passes)


def write_timing(file: str, whole_s: float, represented_s: float, query_s: float) -> None:
    """Write the seconds of an evaluation: as ``s`` all of it, as ``embed_s`` until its pictures are represented.

    A query takes ``ms`` once all is loaded.
    """
    with replacing(file) as path:
        path.write_text(f"s\tembed_s\tms\n{whole_s:.4f}\t{represented_s:.4f}\t{1000 * query_s:.6g}\n")
