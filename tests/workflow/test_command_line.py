"""The line that users type works in the order they type it, in a real Snakemake."""

import subprocess
import sys
from pathlib import Path

import pytest

from snakemake_logger_plugin_lookalike import targets_first

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
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("line", TYPED)
def test_the_line_works_as_typed(workflow, line):
    done = subprocess.run([SNAKEMAKE, *line.split()], cwd=workflow, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (workflow / "table.txt").read_text() == "made\n"


@pytest.mark.slow
def test_a_misspelt_target_is_still_an_error(workflow):
    line = "--cores all --resources gpu=1 tabels"
    done = subprocess.run([SNAKEMAKE, *line.split()], cwd=workflow, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "tabels" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_line_that_snakemake_accepts_is_left_alone():
    for line in ("tables --cores all --resources gpu=1", "-n --config scale=ci", "--resources gpu=1 -- tables", ""):
        assert targets_first(line.split()) == line.split()


def test_only_targets_move():
    line = "--cores all --resources gpu=1 tables figures --config scale=ci grid -n"
    moved = "tables figures grid --cores all --resources gpu=1 --config scale=ci -n"
    assert targets_first(line.split()) == moved.split(" ")
