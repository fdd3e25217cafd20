"""What the benchmarks share: processor time, memory, and findings as JSON for the summary."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Finding:
    """One figure, beside what is promised and what the plain or released path took in the same run."""

    what: str
    unit: str
    measured: float
    limit: float | None = None  # None where nothing is promised
    at_least: bool = False  # whether the limit is one from below
    plain: float | None = None

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return "–"
        kept = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        return "kept" if kept else "missed" if self.at_least else "over"


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What a call returns, and its processor seconds."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def own_megabytes() -> float:
    """Memory of this process that no file backs."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3


def processor_seconds(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Processor seconds of each call in alternating rounds, after two to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(-2, repeats):
        for name, call in calls.items():
            start = time.process_time()
            call()
            if repeat >= 0:
                seconds[name].append(time.process_time() - start)
    return seconds


def median_seconds(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Medians of `processor_seconds`."""
    return {name: statistics.median(times) for name, times in processor_seconds(calls, repeats).items()}


def seconds_of_command(command: Sequence[str], folder: Path | str = ".") -> tuple[float, str]:
    """Processor seconds of a command with all it starts, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout + done.stderr


def parser(documentation: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=documentation.splitlines()[0])
    options.add_argument("--json", type=Path, metavar="PATH", help="write the findings there, for the summary")
    return options


def conclude(findings: Sequence[Finding], path: Path | None) -> None:
    """Print each finding beside its limit, and write all of them with what the machine did meanwhile."""
    for finding in findings:
        limit = "" if finding.limit is None else f" (limit {finding.limit:.4g}: {finding.verdict})"
        print(f"{finding.what}: {finding.measured:.4g} {finding.unit}".rstrip() + limit)
    if path is not None:
        others = (_seconds_of_others() - _OTHERS_BEFORE) / (time.monotonic() - _STARTED)
        about = {"cores": os.cpu_count(), "machine": _machine(), "others": max(0.0, others), "torch": version("torch")}
        content = {**about, "findings": [asdict(finding) for finding in findings]}
        path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _machine() -> str:
    """What the processor calls itself."""
    named = [
        line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if line.startswith("model name")
    ]
    return named[0].partition(":")[2].strip() if named else platform.machine()


def _seconds_of_others() -> float:
    """Processor seconds of all processes so far but this one and its children."""
    user, nice, system = Path("/proc/stat").read_text(encoding="utf-8").split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


_STARTED, _OTHERS_BEFORE = time.monotonic(), _seconds_of_others()
