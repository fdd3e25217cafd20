"""A training that is killed or told to end, at whatever moment, ends with the bytes of one that nobody broke off."""

import os
import random
import signal
import socket
import threading
import time

import pytest

from interrupted import SIGNALS, asked, broken_off, children, final_files, request, seconds_of
from lookalike.workflow.running import jobs
from trainings import write_dataset
from waiting import BEGINS_S, wait_until

EPOCHS = 12

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("pictures"), {"train": 4, "test": 2})


@pytest.fixture(scope="module")
def parent():
    before = os.environ.get(jobs.ADDRESS)
    process = jobs.start_parent(tracked=False)
    yield process
    process.stdin.close()
    process.wait(timeout=60)
    os.environ.pop(jobs.ADDRESS)
    if before is not None:
        os.environ[jobs.ADDRESS] = before


@pytest.fixture(scope="module")
def unbroken(parent, manifest, tmp_path_factory):
    """The final files, and how long their training takes when all is imported."""
    folder = tmp_path_factory.mktemp("unbroken")
    for _ in range(2):
        seconds = seconds_of(request(folder, manifest, epochs=EPOCHS))
    return final_files(folder), seconds


def killed_and_gone_on(folder, manifest, parent, unbroken, *, moments, seed=0):
    """Break trainings off at random moments, by both signals in turn; how many went on from an epoch.

    A moment is so long after an epoch, whichever of them: seconds alone would all fall before the first one where the
    machine has become slower.
    """
    files, seconds = unbroken
    draw, gone_on = random.Random(seed), 0
    for place in range(moments):
        each = folder / str(place)
        each.mkdir()
        number = SIGNALS[place % 2]
        # A state that is written at each epoch's end, or only when the process is told to end.
        wanted = request(each, manifest, epochs=EPOCHS, resume_minutes=0 if number == signal.SIGKILL else 60)
        epochs = draw.randrange(EPOCHS)
        after_s = draw.uniform(0, seconds / EPOCHS if epochs else seconds)
        failure, ended_s = broken_off(parent, wanted, number=number, after_s=after_s, after_epochs=epochs)
        assert ended_s < 20
        if failure:
            assert ("was killed" if number == signal.SIGKILL else "ended by SIGTERM") in failure
            assert asked(wanted) == ""
            gone_on += "continuing after epoch" in (each / "log").read_text()
        assert final_files(each) == files, f"moment {place}"
        assert not (each / ".unfinished").exists()
    return gone_on


def test_killed_or_told_to_end_at_four_moments(tmp_path, manifest, parent, unbroken):
    assert killed_and_gone_on(tmp_path, manifest, parent, unbroken, moments=4) > 0


@pytest.mark.nightly
def test_killed_or_told_to_end_at_twenty_moments(tmp_path, manifest, parent, unbroken):
    gone_on = killed_and_gone_on(tmp_path, manifest, parent, unbroken, moments=20, seed=1)
    print(f"{gone_on} of 20 went on from a finished epoch")
    assert gone_on >= 10


def test_a_training_told_to_end_saves_the_epoch_that_it_has_finished(tmp_path, manifest, parent, unbroken):
    wanted = request(tmp_path, manifest, epochs=10_000, resume_minutes=60)
    failure, ended_s = broken_off(parent, wanted, after_s=unbroken[1], number=signal.SIGTERM)
    assert failure == "ended by SIGTERM; the same line goes on from what is on disk"
    assert ended_s < 20
    assert (tmp_path / ".unfinished").is_file()


def test_a_job_whose_caller_is_killed_saves_and_ends_too(tmp_path, manifest, parent, unbroken):
    wanted = request(tmp_path, manifest, epochs=10_000, resume_minutes=60)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(os.environ[jobs.ADDRESS])
        caller.sendall((jobs.json.dumps(wanted) + "\n").encode())
        time.sleep(unbroken[1])
    told = time.monotonic()
    wait_until((tmp_path / ".unfinished").is_file, 20, "nothing was saved")
    wait_until(lambda: not children(parent.pid), 20 - (time.monotonic() - told), "the job has not ended")


def test_a_job_outlives_its_parent_and_the_next_one_runs_without(tmp_path, manifest, monkeypatch):
    monkeypatch.setenv(jobs.ADDRESS, "")
    orphaned = jobs.start_parent(tracked=False)
    (tmp_path / "first").mkdir()
    wanted = request(tmp_path / "first", manifest, epochs=EPOCHS)
    failures = []
    waiting = threading.Thread(target=lambda: failures.append(asked(wanted)))
    waiting.start()
    wait_until((tmp_path / "first" / "log").exists, BEGINS_S, "no job has begun")
    orphaned.kill()
    orphaned.wait()
    waiting.join(timeout=BEGINS_S)
    assert failures == [""]
    (tmp_path / "second").mkdir()
    assert asked(request(tmp_path / "second", manifest, epochs=EPOCHS)) == ""
    assert final_files(tmp_path / "first") == final_files(tmp_path / "second")
