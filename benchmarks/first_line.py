"""Where the time of README's first line goes: seconds of all jobs of a kind, and of the parts that they tell.

On idle cores run ``snakemake --cores all --resources gpu=1 tables > CALL``, ``python benchmarks/first_line.py CALL``.
``results/benchmarks/first_line.csv`` gets a row a kind: jobs, their seconds in sum and their share of them. Jobs share
the cores, so the call itself took less. ``steps`` are those of trainings, without what is searched between epochs;
``represented`` is what evaluations take until pictures are embeddings.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

import pandas as pd

from lookalike.base.paths import project_root
from lookalike.workflow.plan.timings import seconds

RESULTS, LOGS = Path("results/mini"), Path("logs/mini/train")
JOB = re.compile(r"^\[\d+/\d+\] (\w+).*?: ([\d.e-]+) s(?:,|$)", re.MULTILINE)
WHOLE = re.compile(r"^(\d+) of \d+ jobs done, (.+)$", re.MULTILINE)
EPOCH = re.compile(r"^epoch \d+/\d+ .*?([\d.]+) images/s", re.MULTILINE)


def steps_s(log: str, images: int) -> float:
    """Seconds of all steps that the log of a training tells."""
    return sum(images / max(float(rate), 1) for rate in EPOCH.findall(log))


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("call", metavar="CALL", help="what the call printed")
    options.add_argument("--images", type=int, default=25 * 64, metavar="N", help="of an epoch (default %(default)s)")
    given = options.parse_args()
    said = Path(given.call).read_text(encoding="utf-8")
    kinds: dict[str, list[float]] = defaultdict(list)
    for kind, took in JOB.findall(said):
        kinds[kind.lower()].append(float(took))
    trained = [steps_s(log.read_text(encoding="utf-8"), given.images) for log in LOGS.glob("*.log")]
    embedded = [seconds(file, "embed_s") or 0.0 for file in (RESULTS / "timings" / "evaluate").glob("*.tsv")]
    whole = sum(map(sum, kinds.values()))
    parts = {**kinds, "train: steps": trained, "evaluate: represented": embedded}
    rows = [
        {"jobs of": kind, "jobs": len(took), "seconds": round(sum(took)), "share": round(sum(took) / whole, 3)}
        for kind, took in parts.items()
    ]
    frame = pd.DataFrame(rows).sort_values("seconds", ascending=False)
    frame.to_csv(project_root() / "results" / "benchmarks" / "first_line.csv", index=False)
    print(frame.to_string(index=False))
    print(*(" jobs in ".join(found) for found in WHOLE.findall(said)))


if __name__ == "__main__":
    main()
