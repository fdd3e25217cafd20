"""Run the stages of many short jobs without paying for imports in each of them.

Importing torch, torchvision and pytorch-metric-learning costs several CPU-seconds a process, as much as a whole short
training. One *parent* per Snakemake call therefore imports them once, and forks a child for every job; nothing in the
parent ever starts a torch thread or touches CUDA, so that a child is as good as a fresh process. Where no parent runs
(another executor, a script called by hand) a stage runs in its own process, with the same result.

A call that gets SIGTERM asks its jobs to end (`lookalike.workflow.running.ending`): they save what they have
reached. Snakemake itself would wait until they have finished.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from lookalike.base.files import json_text
from lookalike.workflow.running.devices import own_device
from lookalike.workflow.running.ending import (
    AGAIN_S,
    GRACE_S,
    Terminated,
    listening,
    pass_on,
    passing_on,
    tell_descendants,
)
from lookalike.workflow.running.machine import check_device
from lookalike.workflow.running.records import Recording, job_facts

ADDRESS = "LOOKALIKE_PARENT"  # environment variable with the socket of the preloaded parent
# Of the C library: pages that a step has freed serve the next step, instead of going back to the kernel in between.
ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
# What most jobs import.
PRELOADED = (
    *("torch", "torchvision", "pytorch_metric_learning.losses", "faiss"),
    *(f"lookalike.workflow.stages.{stage}" for stage in ("attribute", "evaluate", "train")),
)
# Two seconds of CPU that every tracked job would pay, and that a call without tracking need not.
PRELOADED_TO_TRACK = ("mlflow.tracking", "mlflow.store.tracking.sqlalchemy_store")
TRACKED = ("train", "evaluate", "segment")  # rules, and not where a training only selects an epoch
# Of the configuration: changing them is no reason to run anything again, so they are no params.
OF_CALL = ("archives", "decoded_gb", "mixed", "resume_minutes")


def run(job: Any) -> None:
    """Run the stage of a rule, with the files and values that the rule names as its arguments.

    The stage is the function ``lookalike.workflow.stages.<rule>:<rule>``, or that of the rule's param ``stage``. Each
    of its arguments is an output, an input, a param, a wildcard or a fact of the call by the same name. ``output`` is
    the first output, named or not; an input of no files leaves the default; a wildcard of digits is a number. The call
    knows its ``config``, what `OF_CALL` names of that, its ``threads``, and ``workers``, one less.

    A rule with the resource ``gpu``, 0 or 1, needs torch: its job is a child of the preloaded parent where there is
    one. Any other runs right here. A log with a name is that of a stage which follows, of wildcards and the call alone.
    A rule without a file to show, such as ``adopt``, shows its log: the person who calls wants to read it.

    Args:
        job: the global ``snakemake`` of a script.

    Raises:
        SystemExit: with one line that says what went wrong, and one that says where the log is.
    """
    offered = {
        "output": {"output": next(iter(job.output), ""), **dict(job.output.items())},
        "input": {name: file if isinstance(file, str) else list(file) for name, file in job.input.items()},
        "params": dict(job.params.items()),
        "wildcards": {name: int(value) if value.isdecimal() else value for name, value in job.wildcards.items()},
        "call": {name: job.config[name] for name in OF_CALL}
        | {"config": job.config, "threads": job.threads, "workers": job.threads - 1},
    }
    request = {
        "stage": job.params.get("stage", job.rule),
        "offered": offered,
        "log": job.log[0],
        "threads": job.threads,
        "gpu": job.resources.get("gpu"),
        "job": job_facts(job),
        "tracked": job.rule in TRACKED and job.config["tracking"],
    }
    call(request)
    for stage, log in job.log.items():
        call({"stage": stage, "offered": {source: offered[source] for source in ("wildcards", "call")}, "log": log})
    if not job.output:
        print(Path(job.log[0]).read_text(encoding="utf-8"), end="", flush=True)


def call(request: dict[str, Any]) -> None:
    """Run a stage, as `run` does.

    Args:
        request: ``stage``, a name or ``"package.module:function"``; by source what its arguments may be, ``offered``,
            which for a child of the parent survives JSON; ``log``, a file; of the job, if need be, ``threads``,
            ``gpu`` (``None`` without torch), ``job`` as of `job_facts`, and whether MLflow gets a copy, ``tracked``.
    """
    address = os.environ.get(ADDRESS)
    failure = _ask_parent(address, request) if address and request.get("gpu", 0) is not None else _perform(request)
    if failure:
        raise SystemExit(f"{request['stage'].rpartition(':')[2]}: {failure}\nlog: {request['log']}")


def stage_of(stage: str) -> Callable[..., Any]:
    """The function that is a rule's stage, given the rule's name or ``"package.module:function"``."""
    module, _, name = (stage if ":" in stage else f"lookalike.workflow.stages.{stage}:{stage}").partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def chosen(stage: Callable[..., Any], offered: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, Any]:
    """Arguments of a stage among those that are offered, by source.

    Raises:
        ValueError: for one that two sources offer, or that has no default and that none offers.
    """
    arguments = {}
    for name, parameter in inspect.signature(stage).parameters.items():
        sources = [source for source, values in offered.items() if name in values]
        required = parameter.default is parameter.empty
        if len(sources) > 1:
            raise ValueError(f"{where}: argument {name!r} is named by {' and '.join(sources)}; rename one of them")
        if required and not sources:
            raise ValueError(f"{where}: argument {name!r} is named by none of {', '.join(offered)}")
        if sources and (required or offered[sources[0]][name] != []):
            arguments[name] = offered[sources[0]][name]
    return arguments


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
    """Have a child of the parent run a request, or this process if the parent is no more; returns the failure."""
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
    """Run one request in this process; returns the failure, empty if there is none."""
    from lookalike.workflow.settings.model import typed  # longer than all else that who only asks the parent imports

    stage, job = request["stage"], request.get("job")
    name = stage.rpartition(":")[2]
    with _logged(request["log"]) as failures:
        with _computing(request.get("threads", 1), request.get("gpu", 0)), Recording(job):
            function = stage_of(stage)
            arguments = chosen(function, request["offered"], f"rule {job['stage'] if job else name}, stage {name}")
            with listening():  # and not any more once it has left its results
                function(**typed(function, arguments))
        if job and request.get("tracked"):
            tracking = importlib.import_module("lookalike.workflow.tracking")  # by its name: it builds on this room
            with listening():
                tracking.send_finished(
                    name, job["outputs"][0], model=arguments["model"], settings=arguments["settings"]
                )
    return failures[0] if failures else ""


@contextlib.contextmanager
def _logged(log: str) -> Iterator[list[str]]:
    """Run a block with its output in a file; its failures stand in the list afterwards.

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
def _computing(threads: int, gpu: int | None) -> Iterator[None]:
    """Give a block the threads and devices that torch may use, or neither where it has none."""
    if gpu is None:
        yield
        return
    import threadpoolctl
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpoolctl.threadpool_limits(threads), own_device(gpu) as device:
            check_device(device)
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
