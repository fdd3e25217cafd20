"""CPU seconds of `snakemake all -n`: planning all that the papers hold, and the same graph with empty rules.

Beside it what the command `lookalike` takes until it has told what a call would cost, and until it has shown its help.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Finding, conclude, parser, seconds_of_command

SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
JOBS = ["all", "--forceall", "--config", "tracking=False"]
PLAN, PLAN_S = ["lookalike", "plan", "--scale", "paper", "--no-measure"], 5.0
HELP, HELP_S = ["lookalike", "--help"], 0.3
ROUNDS = 3
LIMIT_S, LIMIT = 15.0, 1.3  # and times the same graph with empty rules
NODE = re.compile(r'^\s*(\d+)\[label = "(\w+)', re.MULTILINE)
EDGE = re.compile(r"^\s*(\d+) -> (\d+)", re.MULTILINE)
RULE = """
rule {name}:
    input:
        lambda wildcards: NEEDED[wildcards.job],
    output:
        "{name}/{{job}}",
    script:
        "empty.py"

"""


def main() -> None:
    arguments = parser(__doc__).parse_args()
    seconds_of_command([SNAKEMAKE, *JOBS, "-n"])  # keeps digests of code and checks of settings
    _, graph = seconds_of_command([SNAKEMAKE, *JOBS, "--dag", "dot"])
    rounds: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        jobs = write_empty_workflow(graph, Path(folder))
        for _ in range(ROUNDS):  # in turn, as a machine is not always as fast
            own, _ = seconds_of_command([SNAKEMAKE, *JOBS, "-n"])
            plain, told = seconds_of_command([SNAKEMAKE, "-n"], folder)
            rounds.append((own, plain))
    planned, empty = map(statistics.median, zip(*rounds, strict=True))
    ratio = statistics.median(own / plain for own, plain in rounds)
    said, told_in = median_of(HELP), median_of(PLAN)
    counted = max(int(number) for number in re.findall(r"^total +(\d+)", told, re.MULTILINE))
    if counted != jobs:
        raise SystemExit(f"the empty rules make {counted} jobs of {jobs}")
    for own, plain in rounds:
        print(f"{jobs} jobs of this project: {own:.1f} s of CPU, with empty rules {plain:.1f} s")
    findings = [
        Finding(f"planning {jobs} jobs", "s", planned, LIMIT_S, plain=empty),
        Finding(f"planning {jobs} jobs", "times the same graph with empty rules", ratio, LIMIT, plain=1.0),
        Finding(" ".join(PLAN), "s", told_in, PLAN_S),
        Finding(" ".join(HELP), "s", said, HELP_S),
    ]
    conclude(findings, arguments.json)


def median_of(command: Sequence[str]) -> float:
    """Processor seconds of a command of the project, once it has kept what it finds."""
    whole = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    _, *seconds = (seconds_of_command(whole)[0] for _ in range(ROUNDS + 1))
    return statistics.median(seconds)


def write_empty_workflow(graph: str, folder: Path) -> int:
    """Write a Snakefile whose jobs need each other as those of a graph in dot's language do; gives their number."""
    rules = dict(NODE.findall(graph))
    needed: dict[str, list[str]] = {job: [] for job in rules}
    for job, asking in EDGE.findall(graph):
        needed[asking].append(f"{rules[job]}/{job}")
    (last,) = set(rules) - {job for job, _ in EDGE.findall(graph)}
    wanted = f"rule all:\n    input:\n        {needed.pop(last)},\n\n"
    names = sorted({rules[job] for job in needed})  # without the target's own
    lines = [f"NEEDED = {needed}\n\n", wanted, *(RULE.format(name=name) for name in names)]
    (folder / "Snakefile").write_text("\n".join(lines), encoding="utf-8")
    (folder / "empty.py").touch()
    return len(rules)


if __name__ == "__main__":
    main()
