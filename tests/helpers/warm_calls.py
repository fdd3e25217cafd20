"""Calls of Snakemake, forked from a process that has imported it already: by itself, each call pays two seconds for it.

Nothing else is shared: a call has a process, a working directory, an environment and a command line of its own.
"""

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

# What a dry run imports, but for the logger plugin, which looks at the command line when it is imported.
IMPORTED = (
    "snakemake.cli",
    "snakemake.executors.dryrun",
    "snakemake.executors.local",
    "snakemake.report.html_reporter",
    "snakemake.scheduling.greedy",
    "snakemake.scheduling.milp",
    "lookalike.workflow.plan.evidence",
    "lookalike.workflow.report.regression",
    "lookalike.workflow.running.jobs",
    "lookalike.workflow.tracking.server",
    "jsonschema",
    "smart_open",
)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` does, with the output as text."""
    with tempfile.TemporaryDirectory() as written:
        streams = [str(Path(written) / name) for name in ("stdout", "stderr")]
        request = {"command": command, "folder": str(folder), "environment": environment, "streams": streams}
        server = _server()
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        output, errors = (Path(name).read_text() for name in streams)
    return subprocess.CompletedProcess(command, code, output, errors)


@cache
def _server() -> subprocess.Popen[str]:
    """The one of this process, which ends with it."""
    server = subprocess.Popen(
        [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.stdin.close)
    return server


def _serve() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _call(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _call(command: list[str], folder: str, environment: dict[str, str], streams: list[str]) -> None:
    """Become the call, and end with it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in enumerate([os.devnull, *streams]):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    sys.argv = command
    sys.exit(importlib.import_module("snakemake.cli").main())


if __name__ == "__main__":
    _serve()
