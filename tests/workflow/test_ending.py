"""Calls that are told to end, or are killed, lose nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from projects import ROOT
from waiting import BEGINS_S, wait_until

ONE = "--cores all --resources gpu=1 --configfile own.yaml results/own/metrics/compared_margin/pictures/seed0.json"
MODEL = "results/own/models/compared_margin/pictures/seed0.safetensors"

pytestmark = pytest.mark.slow


def log(project):
    path = project.root / "logs" / "own" / "train" / "compared_margin-pictures-seed0.log"
    return path.read_text() if path.is_file() else ""


def in_training(project):
    """A call whose training has finished an epoch, and which would write its state in ten minutes only."""
    project.edit("own.yaml", "resume_minutes: 0", "resume_minutes: 10")
    project.edit("own.yaml", "epochs: 2", "epochs: 3000")
    call = project.start(ONE)
    wait_until(lambda: "epoch 1/3000" in log(project), BEGINS_S, "no training has begun")
    return call


def goes_on(project):
    """The same line, with fewer epochs left to wait for, trains on from the state that is there."""
    saved = project.root / Path(MODEL).with_name(".seed0.unfinished")
    assert saved.is_file()
    call = project.start(ONE)
    try:
        wait_until(lambda: "continuing after epoch" in log(project), BEGINS_S, "nothing was gone on with")
    finally:
        project.kill(call)


def processes_of(project):
    """Processes that work in the project's folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found += [int(folder.name)] if (folder / "cwd").resolve() == project.root.resolve() else []
        except OSError:
            continue
    return found


def test_a_call_that_gets_sigterm_saves_and_ends_within_twenty_seconds(project):
    call = in_training(project)
    told = time.monotonic()
    call.send_signal(signal.SIGTERM)
    assert call.wait(timeout=60) != 0
    assert time.monotonic() - told < 20
    assert "ended by SIGTERM" not in log(project)  # which is no fault with a traceback
    goes_on(project)


def test_a_call_that_draws_data_ends_within_twenty_seconds_and_the_same_line_draws_again(project):
    shutil.copytree(ROOT / "src" / "figurines", project.root / "src" / "figurines")  # by which DVC knows the data
    line = "--cores all --config tracking=false -- data/figurines_birds.json"  # which takes minutes
    drawn = project.root / "data"
    call = project.start(line)
    wait_until(lambda: any(drawn.rglob("*.jpg")), BEGINS_S, "nothing was drawn")
    told = time.monotonic()
    call.send_signal(signal.SIGTERM)
    assert call.wait(timeout=120) != 0
    assert time.monotonic() - told < 20
    wait_until(lambda: not processes_of(project), 20 - (time.monotonic() - told), "it still draws")
    assert not any(drawn.rglob("*.jpg"))
    call = project.start(line)
    try:
        wait_until(lambda: any(drawn.rglob("*.jpg")), BEGINS_S, "the same line does not draw")
    finally:
        call.terminate()
        call.wait()


def test_a_recommendation_that_is_told_to_end_takes_its_workflow_with_it(project):
    for number in range(8, 12):
        shutil.copytree(project.root / "pictures" / "class0", project.root / "pictures" / f"class{number}")
        for picture in (project.root / "pictures" / f"class{number}").iterdir():
            Image.effect_noise((40, 40), number).convert("RGB").save(picture)
    command = [sys.executable, "-m", "lookalike", "recommend", "pictures", "--cores", "1"]
    call = subprocess.Popen(command, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any((project.root / ".snakemake" / "scripts").glob("*.py")), BEGINS_S, "no job has begun")
    told = time.monotonic()
    call.terminate()
    assert call.wait(timeout=60) == 2
    assert time.monotonic() - told < 20
    assert call.stderr.read().splitlines()[-1] == "lookalike: stopped; the same line goes on from there"
    assert processes_of(project) == []


@pytest.mark.nightly
def test_jobs_of_a_call_that_is_killed_save_and_end_by_themselves(project):
    call = in_training(project)
    os.kill(call.pid, signal.SIGKILL)
    call.wait()
    wait_until(lambda: not processes_of(project), 20, "its jobs are still at work")
    assert project.typed("--unlock").returncode == 0
    goes_on(project)


@pytest.mark.nightly
def test_the_whole_group_gets_sigterm_as_on_a_node_that_is_taken_away(project):
    call = in_training(project)
    told = time.monotonic()
    os.killpg(call.pid, signal.SIGTERM)
    call.wait(timeout=60)
    wait_until(lambda: not processes_of(project), 20 - (time.monotonic() - told), "its jobs are still at work")
    goes_on(project)
