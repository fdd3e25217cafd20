"""Data that one clone has pushed are there for another one without running anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import warm_calls
from databases import free_port
from lookalike.workflow.running.versions import reason, reproduce
from projects import ROOT

SPLIT = "data/splits/figurines_people.csv"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="clones need the project's own git history"),
]


def run(folder, *command):
    places = [str(warm_calls.programs()), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(places)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def bucket(monkeypatch):
    """A bucket of a real server that speaks S3 on this machine: how to add it as a remote, and what it holds."""
    import boto3
    from moto.server import ThreadedMotoServer

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "with a secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer("127.0.0.1", free_port(), verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    client = boto3.client("s3", endpoint_url=address)
    client.create_bucket(Bucket="pictures")
    yield address, client
    server.stop()


def clones(tmp_path, remote):
    """Two clones that share a remote."""
    for name in ("first", "second"):
        run(tmp_path, "git", "clone", "--quiet", str(ROOT), name)
        run(tmp_path / name, "dvc", "remote", "add", "--quiet", "--local", "--default", "store", remote)
    return tmp_path / "first", tmp_path / "second"


def assert_the_second_has_what_the_first_made(first, second):
    run(first, "snakemake", "--cores", "1", SPLIT)
    assert run(first, "git", "status", "--porcelain").strip() == "", "the committed dvc.lock is not what came out"
    run(first, "dvc", "push", "--quiet", "split@figurines_people", "draw@figurines_people")
    run(second, "dvc", "pull", "--quiet", "split@figurines_people", "draw@figurines_people")

    assert (first / SPLIT).read_bytes() == (second / SPLIT).read_bytes()
    target = "results/mini/metrics/pcb/figurines_people/seed0.json"
    planned = run(second, "snakemake", "-n", "--cores", "1", target)
    jobs = set(re.findall(r"^(\w+) +\d+$", planned, re.MULTILINE))
    assert jobs == {"train", "evaluate", "total"}


def test_a_second_clone_pulls_what_the_first_one_made(tmp_path):
    assert_the_second_has_what_the_first_made(*clones(tmp_path, str(tmp_path / "store")))


@pytest.mark.nightly
def test_a_second_clone_pulls_what_the_first_one_made_from_a_bucket(tmp_path, bucket):
    address, client = bucket
    first, second = clones(tmp_path, "s3://pictures/lookalike")
    for clone in (first, second):
        run(clone, "dvc", "remote", "modify", "--quiet", "--local", "store", "endpointurl", address)
    assert_the_second_has_what_the_first_made(first, second)
    kept = client.get_paginator("list_objects_v2").paginate(Bucket="pictures")
    kept = [item["Key"] for page in kept for item in page["Contents"]]
    pictures = [path for path in (second / "data" / "figurines_people").rglob("*") if path.is_file()]
    assert all(path.read_bytes() == (first / path.relative_to(second)).read_bytes() for path in pictures)
    # Each picture once, by its content, besides the folder's list, the split and the records.
    assert len({path.read_bytes() for path in pictures}) < len(kept) <= len(pictures) + 5
    assert all(key.startswith("lookalike/files/md5/") for key in kept)


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """A project without a git folder whose one stage can be made to fail."""
    root = tmp_path / "vendor" / "project"
    (root / "params").mkdir(parents=True)
    (root / "Snakefile").touch()
    (root / ".snakemake").mkdir()
    monkeypatch.chdir(root)
    run(root, "dvc", "init", "--no-scm", "--quiet")
    (root / ".dvc" / "config").write_text("[core]\n    analytics = false\n")

    def fail(command):
        (root / "dvc.yaml").write_text(f"stages: {{split: {{cmd: {command!r}, deps: [Snakefile]}}}}\n")
        return root

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


@pytest.mark.parametrize("ignored", ["vendor/", "*.lock", "dvc.yaml", "*", "Snakefile"])
def test_below_another_repository_data_are_made_whatever_that_one_ignores(failing, tmp_path, ignored):
    root = failing("touch made")
    run(tmp_path, "git", "init", "--quiet")
    (tmp_path / ".gitignore").write_text(f"{ignored}\n")
    reproduce("split", ["made"])
    assert (root / "made").exists()
    reproduce("split", ["made"])


@pytest.mark.parametrize("by", ["project", "person"])
def test_in_a_repository_of_its_own_data_are_made_though_a_rule_ignores_locks(failing, tmp_path, monkeypatch, by):
    root = failing("touch made")
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "git", "add", "--force", "vendor")
    if by == "project":
        (root / ".gitignore").write_text("*.lock\n")
    else:
        (tmp_path / "rules").write_text("*.lock\n")
        (tmp_path / ".gitconfig").write_text(f"[core]\nexcludesFile = {tmp_path}/rules\n")
        monkeypatch.setenv("HOME", str(tmp_path))
    reproduce("split", ["made"])
    assert (root / "made").exists()


def test_in_a_repository_of_its_own_dvc_works_with_git(failing, tmp_path):
    root = failing("touch made")
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "git", "add", "vendor")
    reproduce("split", ["made"])
    assert not (root / ".dvc" / "config.local").exists()


@pytest.mark.parametrize("link", ["data", "data/splits"])
def test_data_behind_a_link_to_another_disk_are_made_once(failing, tmp_path, link):
    root = failing("mkdir -p data/splits && echo made >> count && echo made > data/splits/made")
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "git", "add", "vendor")
    (tmp_path / "disk" / "splits").mkdir(parents=True)
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(tmp_path / "disk", target_is_directory=True)
    (root / "dvc.yaml").write_text((root / "dvc.yaml").read_text().replace("}}", ", outs: [data/splits/made]}}"))
    for _ in range(2):
        reproduce("split", ["data/splits/made"])
    (root / "data" / "splits" / "made").unlink()
    reproduce("split", ["data/splits/made"])
    assert (root / "data" / "splits" / "made").read_text() == "made\n"
    assert (root / "count").read_text() == "made\n"


def test_the_reason_is_the_last_error_of_the_stage_else_dvcs_own():
    stage = "lookalike.workflow.data.download.DownloadError: sop.zip cannot be fetched: it has no address\n"
    dvc = "ERROR: failed to reproduce 'split@sop': failed to run: python -m x, exited with 1\n"
    assert reason("Running stage\n", f"Traceback\n{stage}{dvc}") == "sop.zip cannot be fetched: it has no address"
    assert reason("", f"KeyError: 'x'\n{dvc}") == "KeyError: 'x'"
    assert reason("", dvc).startswith("failed to reproduce 'split@sop'")
    unforeseen = "ERROR: unexpected error - [Errno 30] Read-only file system: '/var/tmp/dvc'\n\n"
    unforeseen += "Having any troubles? Hit us up at https://dvc.org/support, we are always happy to help!\n"
    assert reason("", unforeseen) == "unexpected error - [Errno 30] Read-only file system: '/var/tmp/dvc'"


@pytest.mark.nightly
def test_the_unpacked_archive_of_the_repository_makes_its_data(tmp_path):
    root = tmp_path / "unpacked"
    root.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(root)], input=archive, check=True)
    assert not any((folder / ".git").exists() for folder in (root, *root.parents))
    run(root, "snakemake", "--cores", "1", "data/splits/figurines_people.csv")
    assert (root / "data/splits/figurines_people.csv").read_text().count("\n") > 100
