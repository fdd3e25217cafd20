"""Locks of killed calls do not block, locks of living ones stay."""

import errno
import os
import subprocess
import sys

from lookalike.running import locks as calls
from lookalike.running.locks import drop_locks_of_the_dead

LIVE = """
import sys, time
from pathlib import Path
from lookalike.running.locks import drop_locks_of_the_dead
drop_locks_of_the_dead(Path(sys.argv[1]))
print("alive", flush=True)
time.sleep(30)
"""


def leave_locks(folder):
    (folder / "locks").mkdir(parents=True, exist_ok=True)
    (folder / "locks" / "0.output.lock").write_text("results/x\n")


def test_locks_left_by_a_killed_call_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(calls, "_held", [])
    leave_locks(tmp_path)
    assert drop_locks_of_the_dead(tmp_path) == 1
    assert not list((tmp_path / "locks").glob("*.lock"))


def test_a_folder_without_locks_of_the_kernel_leaves_it_to_the_user_who_is_alive(tmp_path, monkeypatch, capsys):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(calls.fcntl, "flock", refuse)
    assert drop_locks_of_the_dead(tmp_path) == 0
    assert capsys.readouterr().err == ""  # nothing is locked
    leave_locks(tmp_path)
    assert drop_locks_of_the_dead(tmp_path) == 0
    assert (tmp_path / "locks" / "0.output.lock").exists()
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path}: Function not implemented, so a killed call cannot be told")
    assert said.endswith("if none is at work here, `snakemake --unlock`\n")


def test_locks_stay_while_another_call_lives_and_go_when_it_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(calls, "_held", [])
    other = subprocess.Popen([sys.executable, "-c", LIVE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline().strip() == "alive"
        leave_locks(tmp_path)
        subprocess.run(
            [sys.executable, "-c", LIVE.replace("time.sleep(30)", ""), str(tmp_path)], capture_output=True, check=True
        )
        assert (tmp_path / "locks" / "0.output.lock").exists()
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert drop_locks_of_the_dead(tmp_path) == 1
