"""Data that one clone has pushed are there for another one without running anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lookalike.running.dvc import reason, reproduce
from projects import ROOT

SPLIT = "data/splits/figurines_people.csv"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="clones need the project's own git history"),
]


def run(folder, *command):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_second_clone_pulls_what_the_first_one_made(tmp_path):
    for name in ("first", "second"):
        run(tmp_path, "git", "clone", "--quiet", str(ROOT), name)
        run(
            tmp_path / name, "dvc", "remote", "add", "--quiet", "--local", "--default", "store", str(tmp_path / "store")
        )
    run(tmp_path / "first", "snakemake", "--cores", "1", SPLIT)
    assert run(tmp_path / "first", "git", "status", "--porcelain").strip() == "", (
        "the committed dvc.lock is not what came out"
    )
    run(tmp_path / "first", "dvc", "push", "--quiet", "split@figurines_people", "download@figurines_people")
    run(tmp_path / "second", "dvc", "pull", "--quiet", "split@figurines_people", "download@figurines_people")

    assert (tmp_path / "first" / SPLIT).read_bytes() == (tmp_path / "second" / SPLIT).read_bytes()
    target = "results/mini/metrics/pcb/figurines_people/seed0.json"
    planned = run(tmp_path / "second", "snakemake", "-n", "--cores", "1", target)
    jobs = set(re.findall(r"^(\w+) +\d+$", planned, re.MULTILINE))
    assert jobs == {"train", "embed", "evaluate", "total"}


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """A project without a git folder whose one stage can be made to fail."""
    (tmp_path / "params").mkdir()
    (tmp_path / "Snakefile").touch()
    (tmp_path / ".snakemake").mkdir()
    monkeypatch.chdir(tmp_path)
    run(tmp_path, "dvc", "init", "--no-scm", "--quiet")
    (tmp_path / ".dvc" / "config").write_text("[core]\n    analytics = false\n")

    def fail(command):
        (tmp_path / "dvc.yaml").write_text(f"stages: {{split: {{cmd: {command!r}}}}}\n")
        return tmp_path

    return fail


def test_a_failing_stage_says_why_in_one_line(failing):
    failing("false")
    with pytest.raises(ValueError, match=r"dvc repro split: .*failed"):
        reproduce("split", [])


def test_the_stages_own_reason_is_what_is_said(failing):
    root = failing("python stage.py")
    (root / "stage.py").write_text("raise ValueError('put sop.zip into data/archives')\n")
    with pytest.raises(ValueError, match=r"^dvc repro split: put sop\.zip into data/archives$"):
        reproduce("split", [])


def test_without_a_git_folder_data_are_made_all_the_same(failing):
    root = failing("touch made")
    reproduce("split", ["made"])
    assert (root / "made").exists()
    reproduce("split", ["made"])


def test_the_reason_is_the_last_error_of_the_stage_else_dvcs_own():
    stage = "lookalike.data.download.DownloadError: sop.zip cannot be fetched: it has no address\n"
    dvc = "ERROR: failed to reproduce 'split@sop': failed to run: python -m x, exited with 1\n"
    assert reason("Running stage\n", f"Traceback\n{stage}{dvc}") == "sop.zip cannot be fetched: it has no address"
    assert reason("", f"KeyError: 'x'\n{dvc}") == "KeyError: 'x'"
    assert reason("", dvc).startswith("failed to reproduce 'split@sop'")


def test_the_unpacked_archive_of_the_repository_makes_its_data(tmp_path):
    root = tmp_path / "unpacked"
    root.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(root)], input=archive, check=True)
    assert not any((folder / ".git").exists() for folder in (root, *root.parents))
    run(root, "snakemake", "--cores", "1", "data/splits/figurines_people.csv")
    assert (root / "data/splits/figurines_people.csv").read_text().count("\n") > 100
