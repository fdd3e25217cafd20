"""Run one benchmark in a process of its own, on one thread."""

import os
import subprocess
import sys

from lookalike.files import write_text
from lookalike.running.jobs import job_log

with job_log("benchmark", snakemake.log[0]):
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, snakemake.input.script, "--json", snakemake.output.findings]
    done = subprocess.run(command, env=os.environ | one_thread, capture_output=True, text=True, check=False)
    print(done.stderr)
    done.check_returncode()
    write_text(snakemake.output.text, done.stdout)
