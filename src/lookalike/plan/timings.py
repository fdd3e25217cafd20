"""How long finished jobs took, as Snakemake measured them."""

from __future__ import annotations

import csv
from pathlib import Path


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
