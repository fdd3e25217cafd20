"""A call begins in whatever a container or a cluster gives it, or says in one line what to set."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from disks import small_disk
from lookalike.workflow.running.surroundings import KEPT, LONGEST, OWN
from projects import ROOT, make_project

NAMELESS = ["unshare", "--user", "--map-user=12345"]  # as the number of nobody, and with no more rights than it has
MOUNTING = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.getuid() else [])]
PREPARE = """
import getpass, json, os, sys, tempfile
from pathlib import Path
from lookalike.workflow.running.surroundings import prepare
said = prepare(Path(sys.argv[1]))
about = {"said": said, "user": getpass.getuser(), "temporary": tempfile.gettempdir(), "environment": dict(os.environ)}
print(json.dumps(about))
"""
# Bound to themselves, not hidden: Python may lie below.
PROJECT_ALONE = "mount --bind {} /mnt && " + "".join(
    f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && " for folder in ("/tmp", "/var/tmp")
)


def allowed(*words):
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not allowed(*NAMELESS, "true"), reason="numbers without a name are not allowed here")


@pytest.fixture
def places(tmp_path):
    """A home and a project to write to, and a folder that nobody may write to."""
    for name in ("home", "project", "closed"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "closed").chmod(0o555)
    return tmp_path


def run(words, *, prefix=NAMELESS, cwd=None, **environment):
    """Call with this environment and nothing else."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
    return subprocess.run(
        [*prefix, *map(str, words)], cwd=cwd or ROOT, env=environment, capture_output=True, text=True, check=False
    )


def prepared(places, prefix=NAMELESS, **environment):
    """What a call finds in such an environment once it is looked after, and the lines that say what is not followed."""
    environment = {"HOME": str(places / "home"), **environment}
    done = run([sys.executable, "-c", PREPARE, places / "project"], prefix=prefix, **environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found, found["environment"], found["said"]


def test_a_number_without_a_name_is_called_by_its_number_unless_it_is_given_a_name(places):
    assert prepared(places)[0]["user"] == "12345"
    assert prepared(places, USER="ada")[0]["user"] == "ada"
    assert prepared(places, LOGNAME="")[0]["user"] == "12345"


def test_where_nothing_is_wrong_nothing_is_changed(places):
    _, environment, said = prepared(places, USER="ada", TMPDIR="/tmp")
    assert said == []
    assert environment.items() >= {"HOME": str(places / "home"), "TMPDIR": "/tmp"}.items()
    assert not {*KEPT, "LOGNAME"} & environment.keys()
    assert not list((places / "project").iterdir())


@pytest.mark.parametrize("home", ["closed", "closed/nobody", "file", "/proc/nowhere"])
def test_where_the_home_cannot_be_written_to_caches_are_kept_in_the_project_without_a_word(places, home):
    _, environment, said = prepared(places, HOME=str(places / home))
    assert said == []
    assert environment["HOME"] == str(places / home)  # credentials may lie there, to be read
    for name in ("XDG_CACHE_HOME", "MPLCONFIGDIR"):
        assert environment[name].startswith(str(places / "project" / OWN))


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_home_that_is_no_folder_is_one_in_the_project(places, home):
    _, environment, _ = prepared(places, HOME=home)
    assert environment["HOME"] == str(places / "project" / OWN)
    done = run([sys.executable, "-m", "lookalike", "data", "status"])  # without any
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", KEPT)
def test_a_folder_that_the_person_has_set_and_nobody_can_write_to_is_named_and_another_one_is_used(places, name):
    _, environment, said = prepared(places, **{name: str(places / "closed")})
    assert len(said) == 1
    assert said[0].startswith(f"{name}={places / 'closed'} cannot be written to, or is full; {places / 'project'}")
    assert environment[name] in said[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("folder", ["closed", "missing", "file", "t" * LONGEST])
@pytest.mark.parametrize("variable", ["TMPDIR", "TMP"])
def test_a_temporary_folder_that_cannot_serve_is_named_and_another_one_is_taken(places, variable, folder):
    (places / ("t" * LONGEST)).mkdir()
    found, environment, said = prepared(places, **{variable: str(places / folder)})
    assert len(said) == 1
    assert said[0].startswith(f"{variable}={places / folder} is not a folder with room that can be written to")
    assert found["temporary"] == environment["TMPDIR"] == "/tmp"


def test_a_full_disk_holds_neither_what_is_temporary_nor_caches(places):
    with small_disk(places / "full", "128k") as full:
        (full / "file").write_bytes(bytes(100 * 1024))
        found, environment, said = prepared(places, TMPDIR=str(full), XDG_CACHE_HOME=str(full))
    assert [line.partition("=")[0] for line in said] == ["TMPDIR", "XDG_CACHE_HOME"]
    assert found["temporary"] == "/tmp"
    assert environment["XDG_CACHE_HOME"].startswith(str(places / "project"))


@pytest.mark.skipif(not allowed(*MOUNTING, "mount", "-t", "tmpfs", "none", "/mnt"), reason="no mounts are allowed")
def test_where_the_project_alone_can_be_written_to_it_holds_what_is_temporary_or_one_line_says_what_to_set(places):
    line = PROJECT_ALONE.format(places / "project")
    prefix = [*MOUNTING, "sh", "-c"]
    call = f"exec {sys.executable} -c '{PREPARE}' /mnt"
    done = run([line + call], prefix=prefix, HOME="/proc/nowhere")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["said"] == []
    assert found["temporary"] == found["environment"]["TMPDIR"] == f"/mnt/{OWN}"
    assert found["environment"]["DVC_SITE_CACHE_DIR"].startswith(f"/mnt/{OWN}")
    done = run([f"{line} mount -o remount,ro,bind /mnt && {call}"], prefix=prefix, HOME="/proc/nowhere")
    said = "ValueError: no temporary folder can be written to and has room (/tmp, /var/tmp, "
    assert done.stderr.splitlines()[-1].startswith(said)
    assert done.stderr.endswith("): set TMPDIR\n")


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "xx_YY"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda each: " ".join(each),
)
def test_a_name_that_a_stream_cannot_print_is_printed_all_the_same(places, locale):
    says = "import sys; print('caf\\u00e9 \\udcff'); print('caf\\u00e9 \\udcff', file=sys.stderr)"
    code = f"{PREPARE}\n{says}\nimport subprocess; subprocess.run([sys.executable, '-c', {says!r}], check=True)"
    done = subprocess.run(
        [*NAMELESS, sys.executable, "-c", code, places / "project"],
        env={"PATH": os.environ["PATH"], "HOME": str(places / "home"), **locale},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for stream in (done.stdout, done.stderr):
        assert sum(line.startswith(b"caf") for line in stream.splitlines()) == 2  # ours and a job's
    assert (b"set PYTHONUTF8=1" in done.stdout) == ("PYTHONUTF8" in locale)


def test_a_model_that_may_not_be_read_is_not_said_to_be_missing(places):
    model = places / "model.safetensors"
    model.touch(mode=0)
    done = run(["lookalike", "search", model, "groceries:Lemon/0.jpg"], HOME=str(places / "home"))
    assert (done.returncode, done.stderr) == (2, f"lookalike: {model}: Permission denied\n")


def test_a_call_from_a_folder_that_is_gone_says_so(tmp_path):
    (tmp_path / "gone").mkdir()
    done = run(
        ["-c", f"rmdir {tmp_path}/gone; {sys.executable} -m lookalike data status"],
        prefix=["sh"],
        cwd=tmp_path / "gone",
    )
    assert (done.returncode, done.stderr) == (
        2,
        "lookalike: the folder of this call has been removed: `cd` into the project's folder again\n",
    )


SCORES = ("--cores", "1", "--configfile", "own.yaml", "--", "results/own/metrics/untrained/pictures/seed0.json")


@pytest.mark.slow
def test_a_call_of_snakemake_as_a_number_without_a_name_or_a_home_makes_what_it_is_asked_for(places):
    project = make_project(places / "p")
    # ... in a home that cannot be written to, with a temporary folder whose name is too long for a socket in it.
    long = places / "home" / ("t" * LONGEST)
    long.mkdir()
    done = run(["snakemake", *SCORES], cwd=project.root, HOME=str(places / "closed"), TMPDIR=str(long))
    assert done.returncode == 0, done.stderr
    assert f"TMPDIR={long} is not a folder" in done.stderr
    assert (project.root / SCORES[-1]).is_file()
    assert not list(long.iterdir())
    assert (project.root / OWN / "xdg_cache_home").is_dir()


@pytest.mark.slow
def test_a_call_in_a_project_of_somebody_else_says_whom_to_be(places):
    project = make_project(places / "p")
    project.root.chmod(0o555)
    try:
        done = run(["snakemake", "-n", *SCORES], cwd=project.root, HOME=str(places / "home"))
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith(
            f"{project.root} cannot be written to by 12345, or its disk is full: make room, or call as"
        )
        assert "--user 12345:" in line  # the owner, as this number sees it
        assert run(["snakemake", "--version"], cwd=project.root, HOME=str(places / "home")).returncode == 0
    finally:
        project.root.chmod(0o755)


@pytest.mark.nightly
def test_a_number_without_a_name_draws_pictures_by_dvc_and_tracks_what_it_measures(tmp_path):
    make_project(tmp_path / "mine")
    shutil.copytree(ROOT / "src", tmp_path / "mine" / "src")  # by which DVC notices other drawings
    shutil.copy(ROOT / "dvc.lock", tmp_path / "mine")
    (tmp_path / "closed").mkdir(mode=0o555)
    target = "results/ci/metrics/untrained/figurines_people/seed0.json"
    words = ["snakemake", "--cores", "1", "--config", "scale=ci", "--", target]
    done = run(words, cwd=tmp_path / "mine", HOME=str(tmp_path / "closed"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / target).is_file()
    assert (tmp_path / "mine" / "mlflow.db").is_file()
