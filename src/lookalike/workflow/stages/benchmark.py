"""Run one benchmark, or assemble the findings of all of them."""

from __future__ import annotations

import os
import subprocess
import sys

from lookalike.base.files import write_text


def benchmark(script: str, *, findings: str | list[str], text: str) -> None:
    """Write the output of a script, run in its own process on one thread: it leaves a file of findings or reads all."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, script, *(["--json", findings] if isinstance(findings, str) else findings)]
    done = subprocess.run(command, env=os.environ | one_thread, capture_output=True, text=True, check=False)
    print(done.stderr)
    done.check_returncode()
    write_text(text, done.stdout)
