"""CPU seconds of `snakemake -n`: starting Snakemake alone, and planning a few hundred jobs of this project."""

import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))


def cpu_seconds(folder: str, *arguments: str) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([SNAKEMAKE, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout + done.stderr


with tempfile.TemporaryDirectory() as empty:
    (Path(empty) / "Snakefile").write_text("rule tables:\n    output: 'x'\n    shell: 'touch {output}'\n")
    alone, _ = cpu_seconds(empty, "-n", "tables")
planned, output = cpu_seconds(".", "tables", "-n", "--config", "seeds=[0,1,2,3,4]", "tracking=False")
jobs = max(int(number) for number in re.findall(r"^total +(\d+)", output, re.MULTILINE))
print(f"Snakemake alone, one job: {alone:.1f} s of CPU")
print(f"this project, {jobs} jobs: {planned:.1f} s of CPU, {planned / alone:.1f} times as much")
