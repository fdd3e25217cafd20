"""A process that is told to end leaves what it holds, and ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lookalike.workflow.running import ending
from lookalike.workflow.running.ending import Terminated, end_descendants, listening, pass_on, passing_on, undisturbed
from waiting import BEGINS_S, wait_until

STUCK = """
import signal, sys, time
from lookalike.workflow.running import ending
ending.GRACE_S = 0.5
with ending.listening():
    print("ready", flush=True)
    while True:
        try:
            time.sleep(60)
        except ending.Terminated:
            pass  # as where the exception is lost in a library
"""


def tell(number=signal.SIGTERM):
    os.kill(os.getpid(), number)
    time.sleep(0.01)


def test_a_stage_hears_it_wherever_it_is_and_only_once():
    with pytest.raises(Terminated), listening():
        try:
            tell()
        finally:
            tell()  # on its way out
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_stage_hears_it_behind_the_finaliser_of_an_object_where_it_would_be_lost():
    class Loader:
        def __del__(self):
            tell()
            gone.append("finalised")

    gone = []
    with pytest.raises(Terminated), listening():
        loader = Loader()
        del loader
        time.sleep(60)
    assert gone == ["finalised"]


def test_it_is_no_fault_that_a_stage_could_take_for_its_own():
    assert not issubclass(Terminated, Exception)


def test_a_process_that_does_not_come_to_its_end_is_ended():
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(timeout=60) == 1
    process.stdout.close()


def test_what_is_being_written_is_finished_first():
    done = []
    with pytest.raises(Terminated), listening():
        with undisturbed():
            tell()
            done.append("written")
        done.append("not reached")
    assert done == ["written"]


def test_a_call_does_what_it_did_and_then_what_it_is_asked_for_besides():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append("Snakemake"))
    try:
        pass_on(lambda: heard.append("jobs"))
        tell()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == ["Snakemake", "jobs"]


def test_what_is_passed_on_in_a_block_is_not_passed_on_behind_it():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append("call"))
    try:
        with passing_on(lambda: heard.append("child")):
            tell()
        tell()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == ["call", "child", "call"]


DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


@pytest.mark.parametrize("deaf", [True, False])
def test_what_a_process_has_started_ends_with_all_that_was_started_by_it(deaf, tmp_path, monkeypatch):
    monkeypatch.setattr(ending, "GRACE_S", ending.SPARE_S + 0.3)
    inner = f'exec {sys.executable} -c "{DEAF}"' if deaf else "sleep 60"
    script = f"({inner}) & echo $! > {tmp_path}/child; wait"
    process = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True)
    if deaf:
        assert process.stdout.readline() == "ready\n"
    wait_until(
        lambda: (tmp_path / "child").is_file() and (tmp_path / "child").read_text(), BEGINS_S, "nothing was started"
    )
    end_descendants()
    child = (tmp_path / "child").read_text().strip()
    wait_until(lambda: not Path("/proc", child).exists(), 5, "it lives on")
    process.wait(timeout=5)
    process.stdout.close()
