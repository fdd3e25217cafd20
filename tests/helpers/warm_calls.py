"""Calls of the project's commands, forked from a process that has read and imported already what each of them needs.

By itself a call pays seconds for importing Snakemake, for reading the package's sources, of which it makes digests, and
where it runs jobs for importing torch. Nothing else is shared: a call has a process, a working directory, an
environment, files and a command line of its own. One that imports another package is to be started as a person does it.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace

# What a dry run imports, but for the logger plugin, which looks at the command line when it is imported; what jobs
# import is named by the parent of a call's jobs.
IMPORTED = (
    "snakemake.cli",
    "snakemake.executors.dryrun",
    "snakemake.executors.local",
    "snakemake.report.html_reporter",
    "snakemake.scheduling.greedy",
    "snakemake.scheduling.milp",
    "lookalike.app.command",
    "lookalike.workflow.plan.evidence",
    "lookalike.workflow.report.regression",
    "lookalike.workflow.running.jobs",
    "lookalike.workflow.tracking.server",
    "jsonschema",
    "smart_open",
)
PROGRAMS = {"snakemake": "snakemake.cli", "lookalike": "lookalike.app.command"}  # by the module of their `main`


class Call:
    """A call at work, leader of a process group of its own, with what tests ask of a ``subprocess.Popen``."""

    def __init__(self, request: dict[str, object], streams: list[int], address: Path) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(address))
        socket.send_fds(self._connection, [b"\n"], streams)
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        self._answers = self._connection.makefile("rb", buffering=0)  # select knows nothing of a buffer
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, if it has ended."""
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        if (code := self._ended_within(timeout)) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Tell the call alone."""
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], seconds)[0]:
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` does, with the output as text."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        code = start(command, folder, environment, output.fileno(), errors.fileno()).wait()
        texts = [stream.seek(0) or stream.read() for stream in (output, errors)]
    return subprocess.CompletedProcess(command, code, *texts)


def start(command: list[str], folder: Path, environment: dict[str, str], *streams: int) -> Call:
    """Start a call, which writes to these descriptors, or nowhere."""
    request = {"command": command, "folder": str(folder), "environment": environment}
    with Path(os.devnull).open("r+") as nowhere:
        return Call(request, [nowhere.fileno(), *(streams or [nowhere.fileno()] * 2)], _address())


@cache
def programs() -> Path:
    """A folder for ``PATH`` with the project's programs, whose calls are warm ones."""
    folder = _address().parent / "bin"
    folder.mkdir()
    for name in PROGRAMS:
        real = Path(sys.executable).with_name(name)
        line = f'exec "{sys.executable}" -SEP "{__file__}" "{_address()}" "{real}" "$@"'
        (folder / name).write_text(f'#!/bin/sh\n[ -z "$PYTHONPATH" ] || exec "{real}" "$@"\n{line}\n')
        (folder / name).chmod(0o755)
    return folder


@cache
def _address() -> Path:
    """Of the server of this process, which ends with it."""
    folder = tempfile.TemporaryDirectory(prefix="warm-", ignore_cleanup_errors=True)
    address = Path(folder.name) / "calls"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)  # before the server has imported anything: who asks too early waits
        handed = listener.fileno()
        command = [sys.executable, "-P", __file__, str(handed)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[handed])
    atexit.register(folder.cleanup)
    atexit.register(server.stdin.close)
    return address


def _serve(handed: int) -> None:
    """Fork two children for every request: one becomes the call, one waits for it and says how it ended."""
    jobs = importlib.import_module("lookalike.workflow.running.jobs")
    for name in (*IMPORTED, *jobs.PRELOADED):
        importlib.import_module(name)
    _read_sources()
    gc.collect()
    gc.freeze()  # children look through what they make, and not through all that is here
    with socket.socket(fileno=handed) as listener:
        while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [])[0]):
            if listener not in ready:
                continue
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection)
            connection.close()
            _reap()
    os._exit(0)  # without tidying up all that was imported


def _reap() -> None:
    """Forget who has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return


def _read_sources() -> None:
    """Digest all stages with whatever they could choose, which parses all that a call's digests are made of."""
    code = importlib.import_module("lookalike.workflow.settings.sources.code")
    trees = importlib.import_module("lookalike.workflow.settings.sources.trees")
    stages = (path.stem for path in (trees.ROOT / "lookalike" / "workflow" / "stages").glob("[a-z]*.py"))
    code.code_digest([f"lookalike.workflow.stages.{stage}" for stage in stages], sorted(code._lookup_keys()))


def _answer(connection: socket.socket) -> None:
    """Make the call that one connection asks for: say which process it is, and how it ended."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rw") as stream:
        request = json.loads(stream.readline())
        call = os.fork()
        if call == 0:
            _call(**request, streams=streams)
        with suppress(ProcessLookupError):
            os.setpgid(call, call)  # as the call does itself: who of them is first, nobody knows
        stream.write(f"{call}\n")
        stream.flush()
        stream.write(f"{os.waitstatus_to_exitcode(os.waitpid(call, 0)[1])}\n")
    os._exit(0)


def _call(command: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Become the call, and end with it."""
    os.setpgid(0, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = command
    program = PROGRAMS[Path(command[0]).name]
    if program.startswith("snakemake") and not {"-n", "--dry-run"} & {*command}:
        _fork_parent_of_jobs()
    _end_with(importlib.import_module(program).main)


def _end_with(main: Callable[[], object]) -> None:
    """End as Python ends with a program, but without tidying up what the server has imported."""
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def _fork_parent_of_jobs() -> None:
    """Have a parent of jobs at hand, should the call ask for one: it is what `start_parent` starts, but warm."""
    jobs = importlib.import_module("lookalike.workflow.running.jobs")
    address = str(Path(tempfile.mkdtemp(prefix="lookalike-")) / "parent.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.close(writing)
        os.dup2(reading, 0)
        jobs._serve(listener.detach(), [*jobs.PRELOADED])
        os._exit(0)
    listener.close()
    os.close(reading)
    process = SimpleNamespace(pid=parent, stdin=os.fdopen(writing, "wb"))

    def start_parent(*, tracked: bool) -> SimpleNamespace:
        os.environ[jobs.ADDRESS] = address
        return process

    jobs.start_parent = start_parent


if __name__ == "__main__":
    if len(sys.argv) == 2:
        _serve(int(sys.argv[1]))
    else:
        about = {"command": sys.argv[2:], "folder": str(Path.cwd()), "environment": dict(os.environ)}
        sys.exit(Call(about, [0, 1, 2], Path(sys.argv[1])).wait())
