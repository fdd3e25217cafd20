"""Assemble what the benchmarks have found."""

import subprocess
import sys

from lookalike.files import write_text
from lookalike.running.jobs import job_log

with job_log("benchmark_summary", snakemake.log[0]):
    command = [sys.executable, snakemake.input.script, *snakemake.input.findings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stderr)
    done.check_returncode()
    write_text(snakemake.output.summary, done.stdout)
