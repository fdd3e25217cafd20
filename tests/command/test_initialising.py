"""Who has the wheel alone gets a project from it in which the workflow runs."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from lookalike.command import main
from lookalike.command.initialising import PACKAGES, parts
from projects import ROOT

UV = shutil.which("uv")


def tracked(folder, part):
    """Files of a part of the project, without what Python leaves beside them."""
    found = folder / part
    paths = found.rglob("*") if found.is_dir() else [found]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts and "project" not in path.relative_to(folder).parts
    }


def test_a_checkout_lays_out_its_own_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    for part in [*parts(ROOT), *(f"src/{package}" for package in PACKAGES)]:
        assert tracked(tmp_path / "mine", part) == tracked(ROOT, part), part
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    told = capsys.readouterr().out
    assert told.startswith("mine: a project of ")
    assert "    cd mine\n    snakemake --cores all --resources gpu=1 tables\n" in told


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("taken", "taken is there and not empty, a project is laid out in a new folder"),
        ("file", "file is there and not empty"),
        ("no/where", "no/where: there is no folder"),
    ],
)
def test_what_is_there_is_left_alone(tmp_path, monkeypatch, capsys, folder, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert main(["init", folder]) == 2
    assert capsys.readouterr().err.startswith(f"lookalike: {said}")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_nothing_is_left_of_a_layout_that_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device", "mine")

    monkeypatch.setattr(shutil, "copy2", full)
    assert main(["init", "mine"]) == 2
    assert capsys.readouterr().err == "lookalike: mine: No space left on device\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(UV is None, reason="uv builds the wheel")
def test_the_wheel_alone_makes_a_project_that_plans_the_same_jobs(tmp_path):
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}

    def run(folder, *words):
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run(tmp_path, "lookalike", "init", "project")
    for part in [*parts(ROOT), *(f"src/{package}" for package in PACKAGES)]:
        assert tracked(tmp_path / "project", part) == tracked(ROOT, part), part
    told = run(tmp_path / "project", "snakemake", "--cores", "1", "-n", "results/mini/tables/methods.csv")
    assert "is imported from" not in told
    jobs = dict(line.split() for line in told.splitlines() if len(line.split()) == 2 and line.split()[1].isdigit())
    assert int(jobs["train"]) > 5
