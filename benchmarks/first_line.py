"""Where the time of README's first line goes: seconds of all jobs of a kind, and of the parts that they tell.

On idle cores run ``snakemake --cores all --resources gpu=1 tables > CALL``, ``python benchmarks/first_line.py CALL``.
``results/benchmarks/first_line.csv`` gets a row a kind: jobs, their seconds in sum and their share of them. Jobs share
the cores, so the call itself took less. ``steps`` are those of trainings, without what is searched between epochs, by
the rates that their logs tell and a whole batch each; ``represented`` is what evaluations take until pictures are
embeddings.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

import pandas as pd

from lookalike.base.paths import project_root
from lookalike.workflow.plan.timings import seconds
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.scales import Scale

SCALE = "mini"
RESULTS, LOGS = Path("results", SCALE), Path("logs", SCALE, "train")
JOB = re.compile(r"^\[\d+/\d+\] (\w+).*?: ([\d.e-]+) s(?:,|$)", re.MULTILINE)
WHOLE = re.compile(r"^(\d+) of \d+ jobs done, (.+)$", re.MULTILINE)
EPOCH = re.compile(r"^epoch \d+/\d+ .*?([\d.]+) images/s", re.MULTILINE)


def steps_s(log: str, images: int) -> float:
    """Seconds of all steps that the log of a training tells."""
    return sum(images / max(float(rate), 1) for rate in EPOCH.findall(log))


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("call", metavar="CALL", help="what the call printed")
    given = options.parse_args()
    said = Path(given.call).read_text(encoding="utf-8")
    kinds: dict[str, list[float]] = defaultdict(list)
    for kind, took in JOB.findall(said):
        kinds[kind.lower()].append(float(took))
    done = WHOLE.search(said)
    told = sum(map(len, kinds.values()))
    if not done or told != int(done[1]):
        raise SystemExit(
            f"{given.call}: {told} jobs tell their seconds, of {done[1] if done else 'a call without an end'}"
        )
    train = read(f"params/scales/{SCALE}.yaml", Scale).dump()["recipe"]["train"]
    images = train["budget"]["batches_per_epoch"] * train["batch_size"]
    trained = [steps_s(log.read_text(encoding="utf-8"), images) for log in LOGS.glob("*.log")]
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
    print(f"{done[1]} jobs in {done[2]}")


if __name__ == "__main__":
    main()
