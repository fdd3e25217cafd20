"""CPU seconds of `snakemake -n`: starting Snakemake alone, and planning a few hundred jobs of this project."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from measure import Finding, conclude, parser, seconds_of_command

SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
LIMIT = 2.2  # times Snakemake alone: 3.9 s for 636 jobs beside 1.8 s, when planning was made fast


def main() -> None:
    arguments = parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as empty:
        (Path(empty) / "Snakefile").write_text("rule tables:\n    output: 'x'\n    shell: 'touch {output}'\n")
        alone, _ = seconds_of_command([SNAKEMAKE, "-n", "tables"], empty)
    command = [SNAKEMAKE, "tables", "-n", "--forceall", "--config", "seeds=[0,1,2,3,4]", "tracking=False"]
    planned, output = seconds_of_command(command)
    jobs = max(int(number) for number in re.findall(r"^total +(\d+)", output, re.MULTILINE))
    print(f"Snakemake alone, one job: {alone:.1f} s of CPU")
    print(f"this project, {jobs} jobs: {planned:.1f} s of CPU, {planned / alone:.1f} times as much")
    findings = [
        Finding(f"planning {jobs} jobs", "s", planned, plain=alone),
        Finding(f"planning {jobs} jobs", "times Snakemake alone", planned / alone, LIMIT, plain=1.0),
    ]
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
