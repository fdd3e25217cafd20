"""Mistakes as people make them: the last line on the terminal says what is wrong, and nothing stands after it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial

import pytest

from projects import OVERLAY, ROOT, make_project
from waiting import BEGINS_S, wait_until

NOISE = re.compile(
    r"Traceback|RuleException|CalledProcessError|WorkflowError|InputFunction|line \d+, in |\.snakemake/scripts"
)
METRICS = "results/own/metrics/margin/pictures/seed0.json"
pytestmark = pytest.mark.slow

# What is typed (after `snakemake`), and the last line.
DRY_RUNS = {
    "a misspelt scale": ("-n --config scale=mni", r"scales/mni\.yaml does not exist, did you mean 'mini'\?"),
    "a misspelt key": ("-n --config sede=1", r"configuration: unknown key 'sede', did you mean 'seeds'\?"),
    "a seed below zero": ("-n --config seeds=[-1]", r"configuration, seeds\.0: -1 is less than the minimum of 0"),
    "a misspelt target": (
        "-n tabels",
        r"^no target 'tabels', did you mean 'tables'\? Targets: ablations, adopt, ",
    ),
    "the file of no table": (
        "-n results/mini/tables/avls_1.csv",
        r"^params/tables and params/sweeps: unknown 'avls_1', did you mean 'avsl_1'\?",
    ),
    "the file of no recipe": (
        "-n results/mini/models/margni/figurines_birds/seed0.csv",
        r"^params/recipes and params/sweeps: unknown 'margni', did you mean 'margin'\?",
    ),
    "the file of no data set": (
        "-n results/mini/metrics/margin/figurines_brids/seed0.json",
        r"^data set of scale mini: unknown 'figurines_brids', did you mean 'figurines_birds'\?",
    ),
    "the split of no data set": ("-n data/splits/cup.csv", r"^data set of scale mini: unknown 'cup'"),
    "a file of no scale": ("-n results/mni/tables/avsl_1.csv", r"^no target 'results/mni/tables/avsl_1\.csv'\."),
    "an overlay that is not there": (
        "-n --configfile onw.yaml",
        r"^onw\.yaml does not exist, did you mean 'own'\?",
    ),
    "an overlay with the name of a study": (
        "-n --configfile study.yaml",
        r"^the overlay, name: 'birds' is taken by a scale, a study of params/overlays, ",
    ),
    "an overlay that is no YAML": ("-n --configfile broken.yaml", r"^broken\.yaml, line 2: is no valid YAML, "),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("mistakes") / "project")
    (project.root / "broken.yaml").write_text("a: [1\nb: 2\n")
    (project.root / "study.yaml").write_text(OVERLAY.replace("name: own", "name: birds"))
    return project


def last_line(done):
    """The last line of a call that has failed, which says nothing else that a person has to pass over."""
    said = (done.stdout + done.stderr).strip().splitlines()
    assert done.returncode not in (0, None)
    assert not [line for line in said if NOISE.search(line)]
    return said[-1]


@pytest.mark.parametrize("what", DRY_RUNS)
def test_a_mistake_on_the_command_line_is_one_line(shared, what):
    line, message = DRY_RUNS[what]
    done = shared.typed(line)
    assert re.search(message, last_line(done)), done.stderr
    assert len((done.stdout + done.stderr).strip().splitlines()) <= 3  # the profile, the configuration, the line


def test_a_broken_picture_is_one_line_with_the_log_that_has_the_traceback(project):
    (project.root / "pictures" / "class0" / "0.png").write_bytes(b"a text, not a picture")
    done = project.typed(f"--cores 1 --keep-going --configfile own.yaml {METRICS}", CUDA_VISIBLE_DEVICES="")
    line = last_line(done)
    assert re.match(r"failed: .*0\.png", line), done.stderr
    log = re.search(r"\(log: (\S+)\)$", line).group(1)
    assert "Traceback" in (project.root / log).read_text()
    assert re.search(r"^Log of the call: \.snakemake/log/.*\.log$", done.stderr, re.MULTILINE)


def test_an_archive_that_cannot_be_had_is_said_as_the_stage_says_it(shared):
    readers = "src/lookalike/workflow/data"  # on which the stages of dvc.yaml depend
    shutil.copytree(ROOT / readers, shared.root / readers, ignore=shutil.ignore_patterns("__pycache__"))
    specification = shared.root / "params" / "datasets" / "sop.yaml"
    text = re.sub(r"https?://[^/\s\]]+", "http://127.0.0.1:9", specification.read_text())
    specification.write_text(text)
    done = shared.typed("--cores 1 --config scale=paper -- data/splits/sop.csv")
    assert re.match(r"failed: Get sop: .*(cannot be fetched|By hand)", last_line(done)), done.stderr


def test_a_full_disk_is_one_line_that_names_the_file(project):
    results = project.root / "results"
    results.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", results], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")
    try:
        done = project.typed(f"--cores 1 --configfile own.yaml {METRICS}", CUDA_VISIBLE_DEVICES="")
    finally:
        subprocess.run(["umount", "-l", results], check=True)
    assert re.match(r"failed: Train .*No space left on device: results/own/\S+ \(log: ", last_line(done)), done.stderr


def test_ctrl_c_and_a_second_call_are_one_line_each(project):
    overlay = project.root / "own.yaml"
    overlay.write_text(overlay.read_text().replace("epochs: 2", "epochs: 5000"))
    line = f"--cores 1 --configfile own.yaml {METRICS}"
    first = subprocess.Popen(
        project.command(line),
        cwd=project.root,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        # A shell lets what it starts in the background ignore Ctrl-C, and these tests may run there.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        began = partial(project.root.glob, "results/own/models/**/.seed0.unfinished")
        wait_until(lambda: list(began()) or first.poll() is not None, BEGINS_S, "no training has begun")
        assert first.poll() is None
        second = last_line(project.typed(line))
        assert second.startswith("this folder is locked: wait for the call at work here")
        assert "`snakemake --unlock`" in second
        whole = project.run(line)
        assert whole.returncode != 0
        assert "cannot be locked" in whole.stdout + whole.stderr
        assert first.poll() is None
        os.killpg(first.pid, signal.SIGINT)  # to all processes, as a terminal does
        _, said = first.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):  # unless a check above has failed, nothing is left of it
            os.killpg(first.pid, signal.SIGKILL)
    assert first.returncode not in (0, None)
    assert re.match(
        r"Stopped on request: 1 of 3 jobs done, .* The same line goes on from here\.$", said.splitlines()[-1]
    )
    assert not NOISE.search(said)


def test_the_command_is_also_a_module(shared):
    done = subprocess.run(
        [sys.executable, "-m", "lookalike", "data", "status", "cup"], cwd=shared.root, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert re.match(r"lookalike: .*'cup'", done.stderr)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a file system to be made read-only")
def test_results_that_nobody_may_write_to_are_one_line(project):
    (project.root / "results").mkdir()
    command = "mount -t tmpfs -o ro tmpfs results && exec " + " ".join(
        project.command(f"--cores 1 --configfile own.yaml {METRICS}")
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], cwd=project.root, capture_output=True, text=True)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("no right to mount")
    assert "Read-only file system" in last_line(done)
