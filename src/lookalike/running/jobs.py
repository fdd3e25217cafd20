"""Run the stages of many short jobs without paying for imports in each of them.

Importing torch, torchvision and pytorch-metric-learning costs several CPU-seconds a process, as much as a whole short
training. One *parent* per Snakemake call therefore imports them once, and forks a child for every job; nothing in the
parent ever starts a torch thread or touches CUDA, so that a child is as good as a fresh process. Where no parent runs
(another executor, a script called by hand) a stage runs in its own process, with the same result.

A call that gets SIGTERM asks its jobs to end (`lookalike.running.ending`): they save what they have reached. Snakemake
itself would wait until they have finished.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from lookalike.files import json_text
from lookalike.running.devices import own_device
from lookalike.running.ending import (
    AGAIN_S,
    GRACE_S,
    Terminated,
    listening,
    pass_on,
    passing_on,
    tell_descendants,
)
from lookalike.running.machine import check_device
from lookalike.running.records import Recording

ADDRESS = "LOOKALIKE_PARENT"  # environment variable with the socket of the preloaded parent
# Of the C library: pages that a step has freed serve the next step, instead of going back to the kernel in between.
ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
PRELOADED = ("torch", "torchvision", "pytorch_metric_learning.losses", "lookalike.stages.preloaded")
# Two seconds of CPU that every tracked job would pay, and that a call without tracking need not.
PRELOADED_TO_TRACK = ("mlflow.tracking", "mlflow.store.tracking.sqlalchemy_store")


def call(
    stage: str,
    *,
    log: str,
    threads: int = 1,
    gpu: int = 0,
    job: dict[str, Any] | None = None,
    tracked: bool = False,
    **arguments: Any,
) -> None:
    """Run ``lookalike.stages.<stage>.<stage>(**arguments)``, in a child of the preloaded parent where there is one.

    Args:
        stage: name of the stage.
        log: file that takes everything the stage prints, and its traceback if it fails.
        threads: CPU threads the stage may use.
        gpu: devices it may use, 0 or 1.
        job: of `lookalike.running.records.job_facts`, to leave records of the files that it makes.
        tracked: whether MLflow gets a copy of the run, once its files and their records are there.
        arguments: passed to the stage; they must survive JSON, so paths are strings.

    Raises:
        SystemExit: with one line that says what went wrong and where the log is.
    """
    request = {"stage": stage, "log": log, "threads": threads, "gpu": gpu, "job": job, "arguments": arguments}
    request["tracked"] = tracked
    address = os.environ.get(ADDRESS)
    failure = _ask_parent(address, request) if address else _perform(request)
    if failure:
        raise SystemExit(f"{stage}: {failure}\nlog: {log}")


def start_parent(*, tracked: bool) -> subprocess.Popen[bytes]:
    """Start the parent of this call and leave its address in the environment, for the jobs to find.

    It lives until the returned process' standard input is closed, which happens at the latest when this process dies.

    Args:
        tracked: whether its jobs log to MLflow.
    """
    address = str(Path(tempfile.mkdtemp(prefix="lookalike-")) / "parent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)  # before the parent runs: a job that asks too early waits, and is still its child
        handed = listener.fileno()
        command = [sys.executable, "-m", __name__, str(handed), *PRELOADED, *(PRELOADED_TO_TRACK if tracked else ())]
        parent = subprocess.Popen(command, stdin=subprocess.PIPE, env={**ALLOCATION, **os.environ}, pass_fds=[handed])
    os.environ[ADDRESS] = address
    return parent


def parent_of_jobs(workflow: Any, *, tracked: bool) -> subprocess.Popen[bytes] | None:
    """Start the parent of a call's jobs, which ends them with the call.

    Args:
        workflow: Snakemake's object of the call.
        tracked: whether jobs log to MLflow.

    Returns:
        The parent, which lives as long as somebody holds it; ``None`` where jobs are processes of their own: also those
        of another machine or a scheduler, which must not work in a process of the call that has sent them.
    """
    if not workflow.local_exec:
        return None
    # With its limit of jobs a second, Snakemake 9.27 sets one more timer at each look for jobs, and each timer looks
    # again a second later: after 200 jobs that is half a core.
    workflow.scheduler.job_rate_limiter = None
    parent = start_parent(tracked=tracked)
    pass_on(partial(_end_jobs, parent))
    return parent


def _end_jobs(parent: subprocess.Popen[bytes]) -> None:
    """Let the parent end, which asks its jobs to and waits for them; other jobs hear it from here."""
    if parent.stdin:
        parent.stdin.close()
    threading.Thread(target=_tell_jobs, args=({parent.pid},), daemon=True).start()


def _tell_jobs(told: set[int]) -> None:
    """Each once, and again whoever has begun meanwhile, until this process ends."""
    while True:
        told |= {each.pid for each in tell_descendants(besides=told)}
        time.sleep(AGAIN_S)


def _ask_parent(address: str, request: dict[str, Any]) -> str:
    """What went wrong in a child of the parent, or in this process if the parent is no more."""
    reply = ""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
        except OSError:
            return _perform(request)
        ending = partial(connection.shutdown, socket.SHUT_WR)  # by which the child hears it; its answer is waited for
        with contextlib.suppress(ConnectionError), passing_on(ending), connection.makefile("rw") as stream:
            stream.write(json_text(request, where="arguments of the stage") + "\n")
            stream.flush()
            reply = stream.readline()
    return json.loads(reply)["failure"] if reply else "the process running it was killed (out of memory?)"


def _perform(request: dict[str, Any]) -> str:
    """Run one request in this process; returns what went wrong, empty if nothing did."""
    stage, arguments, job = request["stage"], request["arguments"], request.get("job")
    with _logged(request["log"]) as failures:
        with _threads(request["threads"]), own_device(request["gpu"]) as device, Recording(job):
            check_device(device)
            module = importlib.import_module(f"lookalike.stages.{stage}")
            with listening():  # and not any more once it has left its results
                getattr(module, stage)(**arguments)
        if job and request.get("tracked"):
            tracking = importlib.import_module("lookalike.tracking")  # by its name: it builds on this room
            with listening():
                tracking.send_finished(
                    stage, job["outputs"][0], model=arguments["model"], settings=arguments["settings"]
                )
    return failures[0] if failures else ""


@contextlib.contextmanager
def job_log(stage: str, log: str, job: dict[str, Any] | None = None) -> Iterator[None]:
    """Run a stage that needs no torch right here, its output in a file; ``job`` as for `call`.

    Raises:
        SystemExit: with one line that says what went wrong and where the log is.
    """
    with _logged(log) as failures, Recording(job), listening():
        yield
    if failures:
        raise SystemExit(f"{stage}: {failures[0]}\nlog: {log}") from None


@contextlib.contextmanager
def _logged(log: str) -> Iterator[list[str]]:
    """Run a block with its output in a file; what went wrong in it stands in the list afterwards.

    A full disk takes no log either: then the list is all that is left of an error.
    """
    failures: list[str] = []
    try:
        with _output_to(Path(log)):
            try:
                yield failures
            except Terminated:
                failures.append("ended by SIGTERM; the same line goes on from what is on disk")
            except Exception as error:
                failures.append(_one_line(error, log))
                traceback.print_exc()
    except OSError as error:
        failures.append(_one_line(error, log))


def _one_line(error: Exception, log: str) -> str:
    if isinstance(error, OSError) and error.errno and error.strerror == os.strerror(error.errno):
        return f"{error.strerror}: {error.filename or log}"  # without a name it is what was being printed
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    meant_for_users = isinstance(error, ValueError | OSError) or type(error).__module__.startswith("lookalike.")
    return lines[0] if meant_for_users else f"{type(error).__name__}: {lines[0]}"


@contextlib.contextmanager
def _output_to(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("w", buffering=1, encoding="utf-8", errors="backslashreplace") as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        warnings_marked(stream),
    ):
        yield


@contextlib.contextmanager
def warnings_marked(stream: TextIO) -> Iterator[None]:
    """Write warnings of the package behind a word that the view of the call looks for."""
    handler, logger = logging.StreamHandler(stream), logging.getLogger("lookalike")
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    import threadpoolctl
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpoolctl.threadpool_limits(number):
            yield
    finally:
        torch.set_num_threads(before)


def _serve(handed: int, preloaded: Sequence[str]) -> None:
    """Fork a child for every connection to a listening socket, given by its descriptor, until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the call itself decides what they mean
    children: set[int] = set()
    with socket.socket(fileno=handed) as listener:
        address = Path(listener.getsockname())
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [], 1.0)
            children = {child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)}
            if sys.stdin in ready:
                break
            if listener in ready:
                for name in preloaded:
                    with contextlib.suppress(Exception):  # a job that needs it says in its log what is wrong with it
                        importlib.import_module(name)
                connection, _ = listener.accept()
                child = os.fork()
                if child == 0:
                    listener.close()
                    _answer(connection)
                connection.close()
                children.add(child)
    _end(children)
    address.unlink()
    address.parent.rmdir()


def _end(children: set[int]) -> None:
    """Ask children to end, and end those that do not."""
    for number, patience_s in ((signal.SIGTERM, GRACE_S + 1), (signal.SIGKILL, GRACE_S)):
        for child in children:
            os.kill(child, number)
        deadline = time.monotonic() + patience_s
        while children and time.monotonic() < deadline:
            children = {child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)}
            time.sleep(0.02)


def _answer(connection: socket.socket) -> None:
    """Serve one connection in a forked child, which ends with it, and not by an interrupt that the caller hears too."""
    with contextlib.suppress(OSError), connection.makefile("rw") as stream:  # a caller that has gone hears no answer
        request = json.loads(stream.readline())
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        stream.write(json.dumps({"failure": _perform(request)}, allow_nan=False) + "\n")
        stream.flush()
    os._exit(0)


def _end_with(connection: socket.socket) -> None:
    """Nobody waits for a job whose caller has gone: Snakemake has cancelled it, or was killed."""
    if not connection.recv(1):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_S)
        os._exit(1)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2:])
