"""Data that one clone has pushed are there for another one without running anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lookalike.versions import reproduce
from projects import ROOT

SPLIT = "data/splits/figurines_birds.csv"
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
    run(tmp_path / "first", "dvc", "push", "--quiet", "split@figurines_birds", "download@figurines_birds")
    run(tmp_path / "second", "dvc", "pull", "--quiet", "split@figurines_birds", "download@figurines_birds")

    assert (tmp_path / "first" / SPLIT).read_bytes() == (tmp_path / "second" / SPLIT).read_bytes()
    target = "results/mini/metrics/proxy_anchor/figurines_birds/seed0.json"
    planned = run(tmp_path / "second", "snakemake", "-n", "--cores", "1", target)
    jobs = set(re.findall(r"^(\w+) +\d+$", planned, re.MULTILINE))
    assert jobs == {"train", "embed", "evaluate", "total"}


def test_a_failing_stage_says_why_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "params").mkdir()
    (tmp_path / "Snakefile").touch()
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / "dvc.yaml").write_text("stages: {split: {cmd: 'false'}}\n")
    monkeypatch.chdir(tmp_path)
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "dvc", "init", "--quiet")
    with pytest.raises(ValueError, match=r"dvc repro split: .*failed"):
        reproduce("split", [])
