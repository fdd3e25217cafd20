"""Run one benchmark, or assemble what all of them have found."""

from __future__ import annotations

import os
import subprocess
import sys

from lookalike.base.files import write_text


def benchmark(script: str, *, findings: str | list[str], text: str) -> None:
    """Write what a script prints, in a process of its own on one thread: of the file that it leaves, or of several."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, script, *(["--json", findings] if isinstance(findings, str) else findings)]
    done = subprocess.run(command, env=os.environ | one_thread, capture_output=True, text=True, check=False)
    print(done.stderr)
    done.check_returncode()
    write_text(text, done.stdout)
