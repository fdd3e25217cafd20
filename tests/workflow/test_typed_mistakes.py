"""Mistakes that people made, typed again: each ends with what `mistakes.yaml` says that it prints."""

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

import warm_calls
from projects import ROOT, make_project

MISTAKES = yaml.safe_load((Path(__file__).with_name("mistakes.yaml")).read_text())
MOUNTED = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
COMMANDS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def printed(pattern, text):
    """Whether a text holds a line, in which … stands for anything."""
    parts = map(re.escape, " ".join(pattern.split()).split("…"))
    return re.search(".*".join(parts), " ".join(text.split()))


@pytest.mark.nightly
@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda entry: entry["mistake"])
def test_a_mistake_is_told_in_a_line(mistake, tmp_path):
    if mistake.get("needs") == "a mount" and subprocess.run(MOUNTED, capture_output=True).returncode:
        pytest.skip("no mounts are allowed")
    folder, home = tmp_path / "project", tmp_path / "home"
    home.mkdir()
    make_project(folder)
    # What needs something of the machine is typed as it is, and all else forks the programs that it names.
    programs = COMMANDS if "needs" in mistake else f"{warm_calls.programs()}{os.pathsep}{COMMANDS}"
    environment = {**os.environ, "PATH": programs, "HOME": str(home), "CUDA_VISIBLE_DEVICES": "", "CHECKOUT": str(ROOT)}
    environment |= mistake.get("environment", {})
    typed = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
    subprocess.run(["bash", "-ec", mistake.get("before", "true")], check=True, **typed)
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also below a shell that has put the tests behind it
    done = subprocess.run(["bash", "-c", mistake["typed"]], timeout=300, preexec_fn=hears, **typed)
    said = done.stdout + done.stderr
    assert done.returncode == mistake.get("code", 1), said
    assert printed(mistake["prints"], said), said
    assert "Traceback" not in said or mistake.get("traceback"), said
