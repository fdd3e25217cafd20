"""The line that users type works in the order they type it, in a real Snakemake."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warm_calls
from projects import ROOT, make_project
from snakemake_logger_plugin_lookalike import targets_first
from snakemake_logger_plugin_lookalike.command_line import asking_project, targets_of

SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
TYPED = [
    "--cores all --resources gpu=1 tables",
    "tables --cores all --resources gpu=1",
    "--cores all --resources gpu=1 mem_mb=100 tables --config name=x",
    "--cores all --config name=x tables",
    "--cores all --configfile own.yaml tables",
    "--cores all --resources gpu=1 -- tables",
]


@pytest.fixture
def workflow(tmp_path):
    (tmp_path / "Snakefile").write_text(
        'rule tables:\n    input: "table.txt"\n\n'
        'rule table:\n    output: "table.txt"\n    shell: "echo made > {output}"\n'
    )
    (tmp_path / "own.yaml").write_text("name: x\n")
    (tmp_path / "profiles" / "default").mkdir(parents=True)
    (tmp_path / "profiles" / "default" / "config.yaml").write_text("logger: lookalike\n")
    return tmp_path


def typed(folder, line):
    return warm_calls.run([SNAKEMAKE, *line.split()], folder, dict(os.environ))


def typed_cold(folder, line):
    """A call that imports all by itself, from the folder that it is made in."""
    return subprocess.run([SNAKEMAKE, *line.split()], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("line", TYPED)
def test_the_line_works_as_typed(workflow, line):
    done = typed(workflow, line)
    assert done.returncode == 0, done.stderr
    assert (workflow / "table.txt").read_text() == "made\n"


@pytest.mark.slow
def test_a_call_from_a_sub_folder_is_one_of_the_project(workflow):
    (workflow / "notes" / "today").mkdir(parents=True)
    done = typed_cold(workflow / "notes" / "today", "--cores 1 --resources gpu=1 tables")
    assert done.returncode == 0, done.stderr
    assert (workflow / "table.txt").read_text() == "made\n"


@pytest.mark.slow
@pytest.mark.parametrize(("above", "sign"), [("set {x}", "{"), ("x}", "}"), ("{{x}}", "{")])
def test_a_project_that_snakemake_cannot_name_is_refused_before_anything_is_written(workflow, above, sign):
    root = workflow / above / "project"
    shutil.copytree(workflow, root, ignore=shutil.ignore_patterns(above))
    before = sorted(root.rglob("*"))
    for folder in (root, root / "profiles"):
        done = typed(folder, "tables --cores 1")
        line = f"{workflow / above}: Snakemake takes the {sign} for a wildcard's; rename this folder without it\n"
        assert (done.returncode, done.stderr) == (1, line)
    assert sorted(root.rglob("*")) == before
    assert typed(root, "--version").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("above", ["my folder", "it's & (more); $HOME"])
def test_jobs_begin_where_the_path_of_python_means_something_to_a_shell(tmp_path, above):
    root = make_project(tmp_path / above / "project").root
    (root / ".venv" / "bin").mkdir(parents=True)  # as the README has it
    python = root / ".venv" / "bin" / "python"
    python.symlink_to(sys._base_executable)
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys._base_executable).parent}\n")
    (root / ".venv" / "lib").symlink_to(Path(sys.prefix) / "lib")
    line = "--cores 1 --configfile own.yaml -- data/own/splits/pictures.csv"
    done = subprocess.run(
        [python, "-m", "snakemake", *line.split()], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (root / "data" / "own" / "splits" / "pictures.csv").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["{table} of {x}", "q?[a]'", "p$b%20;#&"])
def test_what_a_person_names_is_no_pattern(project, name):
    (project.root / "pictures").rename(project.root / f"pictures {name}")
    project.edit("own.yaml", "folder: pictures}", f"folder: {json.dumps(f'pictures {name}')}}}")
    (project.root / "own.yaml").write_text(f"title: {json.dumps(name)}\n{(project.root / 'own.yaml').read_text()}")
    command = [*project.command("-n --cores 1 tables page --configfile"), f"own {name}.yaml"]
    (project.root / "own.yaml").rename(project.root / f"own {name}.yaml")
    done = warm_calls.run(command, project.root, dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "tables_page" in done.stdout + done.stderr


@pytest.mark.slow
def test_the_call_of_another_project_is_left_alone(workflow):
    (workflow / "profiles" / "default" / "config.yaml").write_text("cores: 1\n")
    done = typed(workflow, "--cores all --resources gpu=1 tables")
    assert done.returncode != 0  # as Snakemake has it: `tables` is no resource
    (workflow / "below").mkdir()
    assert "No Snakefile found" in typed(workflow / "below", "tables").stderr
    done = typed(workflow, "tables")
    assert done.returncode == 0
    assert "Finished jobid: 0" in done.stderr


def test_whose_call_it_is_follows_from_where_it_is_made_and_what_it_names(workflow):
    other = workflow / "other"
    other.mkdir()
    (other / "Snakefile").touch()
    assert asking_project([], workflow) == workflow
    assert asking_project(["--snakefile", "../Snakefile"], other) == other / ".."
    assert asking_project(["-d", str(workflow)], other) == workflow
    assert asking_project([], other) is None  # a project of its own, inside of ours
    assert asking_project(["--snakefile=other/Snakefile"], workflow) is None
    (workflow / "profiles" / "default" / "config.yaml").write_text("logger: [rich, lookalike]\n")
    assert asking_project([], workflow / "profiles") == workflow


def test_targets_are_the_rules_without_wildcards():
    assert {"tables", "all", "claims", "regression", "benchmarks"} <= set(targets_of(ROOT))
    assert not {"train", "split", "table", "benchmark"} & set(targets_of(ROOT))


def test_a_line_that_snakemake_accepts_is_left_alone():
    for line in ("tables --cores all --resources gpu=1", "-n --config scale=ci", "--resources gpu=1 -- tables", ""):
        assert targets_first(line.split()) == line.split()


def test_metrics_are_a_target_and_no_configuration():
    line = "--configfile own.yaml more.json results/own/metrics/margin/pictures/seed0.json"
    moved = "results/own/metrics/margin/pictures/seed0.json --configfile own.yaml more.json"
    assert targets_first(line.split()) == moved.split()


def test_only_targets_move():
    line = "--cores all --resources gpu=1 tables figures --config scale=ci grid -n"
    moved = "tables figures grid --cores all --resources gpu=1 --config scale=ci -n"
    assert targets_first(line.split()) == moved.split(" ")


@pytest.mark.slow
def test_the_profile_for_slurm_plans_a_call_without_a_scheduler(project):
    done = project.run("-n --workflow-profile profiles/slurm --configfile own.yaml -- tables")
    assert done.returncode == 0, done.stderr
    assert "Train compared_margin on pictures, seed 0" in done.stdout + done.stderr


@pytest.mark.slow
def test_some_tables_of_an_overlay_have_a_page_of_their_own(project):
    done = project.run("-n --configfile own.yaml --config tables=[methods] -- results/own/tables/methods.html")
    assert done.returncode == 0, done.stderr
