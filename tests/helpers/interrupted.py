"""A training as a job of the workflow runs it, in a child of a parent, which can be told to end at any moment."""

import os
import signal
import threading
import time
from pathlib import Path

from lookalike.workflow.running import jobs
from trainings import section

FINAL = ("model", "history.csv")


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def request(folder, manifest, *, epochs, resume_minutes=0.0):
    """A training of some epochs, whose state is written so often."""
    paths = {"model": "model", "history": "history.csv", "resume": ".unfinished"}
    arguments = {
        "settings": section("projected", {"budget": {"epochs": epochs}}).dump(),
        "seed": 0,
        "code": "c",
        "manifest": str(manifest),
        "root": str(manifest.parent),
        "resume_minutes": resume_minutes,
        **{key: str(folder / name) for key, name in paths.items()},
    }
    return {"stage": "train", "offered": {"test": arguments}, "log": str(folder / "log")}


def asked(wanted):
    """What went wrong in a job of the parent, empty if nothing did."""
    return jobs._ask_parent(os.environ[jobs.ADDRESS], wanted)


def finished_epochs(wanted):
    """Epochs that a job tells of in its log, which it does behind what it holds of them."""
    log = Path(wanted["log"])
    return log.read_text().count("\nepoch ") if log.exists() else 0


def broken_off(parent, wanted, *, number, after_s=0.0, after_epochs=0):
    """Start a job and send its process a signal so many seconds after it has finished so many epochs.

    Returns:
        What went wrong, and seconds until it ended.
    """
    failures = []
    waiting = threading.Thread(target=lambda: failures.append(asked(wanted)))
    waiting.start()
    while finished_epochs(wanted) < after_epochs and waiting.is_alive():
        time.sleep(0.002)
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline and waiting.is_alive():
        time.sleep(0.002)
    for child in children(parent.pid):
        os.kill(child, number)
    told = time.monotonic()
    waiting.join(timeout=60)
    return failures[0], time.monotonic() - told


def final_files(folder):
    return {name: (folder / name).read_bytes() for name in FINAL}


def seconds_of(wanted):
    """How long a job takes that nobody breaks off."""
    began = time.monotonic()
    assert asked(wanted) == ""
    return time.monotonic() - began


SIGNALS = (signal.SIGKILL, signal.SIGTERM)
