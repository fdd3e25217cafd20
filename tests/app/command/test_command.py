"""The command that tells what is on disk, on a project with four small data sets."""

import argparse
import errno
import hashlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from PIL import Image

import lookalike
from lookalike.app.command import main, parser
from lookalike.base import paths
from lookalike.base.paths import project_root
from lookalike.base.text import WIDTH
from lookalike.workflow.data import (
    checksums,
    ensure_data,
    load_specification,
    read_layout,
    read_split,
    resized_copy,
    write_manifest,
)
from projects import ROOT


def tar_of(names):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in names:
            header = tarfile.TarInfo(name)
            header.size = len(name)
            tar.addfile(header, io.BytesIO(name.encode()))
    return stream.getvalue()


BIRDS = tar_of(["a/0.jpg", "a/1.jpg", "b/0.jpg"])


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout with the data sets ``birds``, ``clothes``, ``drawn`` and ``walkers``."""
    shutil.copytree(project_root() / "params" / "datasets", tmp_path / "real")
    (tmp_path / "Snakefile").touch()
    (tmp_path / "params" / "datasets").mkdir(parents=True)
    configuration = {"scale": "mini", "seeds": [0], "archives": "store", "tracking": False}
    (tmp_path / "params" / "config.yaml").write_text(yaml.safe_dump(configuration))
    birds = {"file": "birds.tgz", "creates": "a", "size": len(BIRDS), "sha256": hashlib.sha256(BIRDS).hexdigest()}
    addresses = {"urls": ["http://localhost/birds.tgz"]}
    specifications = {
        "birds": {"counts": {"train": {"images": 2}, "test": {"images": 1}}, "archives": [{**birds, **addresses}]},
        "clothes": {
            "archives": [{"file": "img.zip", "creates": "img", "unverified": True}],
            "manual": "accept the owner's agreement at https://example.org/agreement and download img.zip",
        },
        "drawn": {"generator": {"preset": "birds", "seed": 0}},
        "walkers": {"archives": [], "manual": "ask the owner"},
    }
    for name, content in specifications.items():
        content = {"title": f"some {name}", "layout": "folder", "licence": f"licence of {name}", **content}
        (tmp_path / "params" / "datasets" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.delenv("LOOKALIKE_ARCHIVES", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unpacked(project):
    """The birds on disk: their archive under a name of the user's, unpacked, with a manifest."""
    (project / "store" / "old things").mkdir(parents=True)
    (project / "store" / "old things" / "my birds.bin").write_bytes(BIRDS)
    root = ensure_data(load_specification("birds"), project / "data" / "birds", project / "store")
    write_manifest(read_split("birds", root), project / "data" / "splits" / "birds.csv", root)
    return root


def output(capsys, *arguments, code=0):
    assert main(arguments) == code
    return capsys.readouterr().out


def of(text, name):
    """The paragraph of one data set, with single spaces."""
    (paragraph,) = (part for part in text.split("\n\n") if part.startswith(f"{name}: "))
    return " ".join(paragraph.split())


def test_the_status_of_an_empty_folder_says_per_data_set_how_to_get_it(project, capsys):
    text = output(capsys, "data", "status")
    assert "data not unpacked yet archive birds.tgz" in of(text, "birds")
    assert "to do nothing; the first run that uses it gets what is missing" in of(text, "birds")
    assert "licence licence of clothes" in of(text, "clothes")
    assert "accept the owner's agreement at https://example.org/agreement" in of(text, "clothes")
    assert "the first run that uses it draws it" in of(text, "drawn")
    assert "to do Fill data/walkers: ask the owner" in of(text, "walkers")
    assert text.endswith("Ready: none\nCome by themselves: birds, drawn\nWait for you: clothes, walkers\n")
    assert not (project / "data").exists()


def test_the_status_of_data_names_archive_pictures_size_and_licence(project, unpacked, capsys):
    birds = of(output(capsys, "data", "status", "birds"), "birds")
    assert "data data/birds: 3 pictures of 2 classes, 21 bytes; counts verified" in birds
    assert "bytes recorded in data/splits/birds.csv" in birds
    assert f"archive birds.tgz, {len(BIRDS)} bytes: store/old things/my birds.bin, checksum verified" in birds
    assert "licence licence of birds" in birds


def test_the_status_tells_a_wrong_file_and_a_broken_download_from_the_archive(project, capsys):
    (project / "store").mkdir()
    (project / "store" / "birds.tgz").write_bytes(BIRDS[:-1])
    expected = f"store/birds.tgz has {len(BIRDS) - 1} bytes instead of {len(BIRDS)}"
    assert expected in of(output(capsys, "data", "status"), "birds")
    (project / "store" / "birds.tgz").rename(project / "store" / "birds.tgz.part")
    expected = f"{len(BIRDS) - 1} bytes of a broken download, to be gone on with"
    assert expected in of(output(capsys, "data", "status"), "birds")


def test_the_status_of_a_folder_that_lost_a_file_says_so_and_that_nothing_overwrites_it(unpacked, capsys):
    (unpacked / "a" / "1.jpg").unlink()
    text = output(capsys, "data", "status", "birds")
    assert "not usable: some birds, train: 2 images expected, 1 images found" in of(text, "birds")
    assert "what data/birds holds is not overwritten" in of(text, "birds")
    assert "Wait for you: birds" in text


def test_a_folder_that_lost_what_an_archive_creates_comes_by_itself(project, unpacked, capsys):
    shutil.rmtree(unpacked / "a")
    assert "Come by themselves: birds" in output(capsys, "data", "status", "birds")
    ensure_data(load_specification("birds"), unpacked, project / "store")
    assert "Ready: birds" in output(capsys, "data", "status", "birds")


def test_archives_of_another_folder_are_found(project, unpacked, capsys, monkeypatch):
    (project / "store").rename(project / "elsewhere")
    assert "not on disk" in of(output(capsys, "data", "status", "birds"), "birds")
    text = output(capsys, "data", "status", "birds", "--archives", str(project / "elsewhere"))
    assert "elsewhere/old things/my birds.bin" in of(text, "birds")
    monkeypatch.setenv("LOOKALIKE_ARCHIVES", "elsewhere")
    assert "elsewhere/old things/my birds.bin" in of(output(capsys, "data", "status", "birds"), "birds")


def test_the_status_of_the_real_data_sets_fits_a_hundred_columns_but_for_long_addresses(project, capsys):
    shutil.rmtree(project / "params" / "datasets")
    (project / "real").rename(project / "params" / "datasets")
    text = output(capsys, "data", "status")
    assert all(len(line) <= WIDTH or line.strip().startswith("http") for line in text.splitlines())
    assert WIDTH == 100
    for name in ("cub", "cars", "sop", "inshop", "inat", "cuhk03_labeled", "pascal5i", "figurines_birds"):
        assert "licence " in of(text, name)
    assert "accept the owner's agreement at http://mmlab.ie.cuhk.edu.hk" in of(text, "inshop")


def test_verifying_what_is_right_gives_one_line_per_data_set(unpacked, capsys):
    lines = output(capsys, "data", "verify").splitlines()
    assert lines[0] == "ok     birds: 1 archive right; 3 pictures, each byte as in the manifest"
    assert lines[1:] == [*(f"ok     {name}: nothing on disk" for name in ("clothes", "drawn", "walkers")), "0 faults"]


def test_verifying_without_a_manifest_counts(project, unpacked, capsys):
    (project / "data" / "splits" / "birds.csv").unlink()
    assert "3 pictures, counted only, there is no manifest" in output(capsys, "data", "verify", "birds")
    (unpacked / "b" / "9.jpg").touch()
    text = output(capsys, "data", "verify", "birds", code=1)
    assert text == "fault  birds: some birds, test: 1 images expected, 2 images found\n1 fault\n"


def change_a_picture(project):
    (project / "data" / "birds" / "a" / "0.jpg").write_bytes(b"b/0.jpg")
    return "data/birds/a/0.jpg has other bytes than its manifest says"


def lose_a_picture(project):
    (project / "data" / "birds" / "a" / "0.jpg").unlink()
    return "data/birds/a/0.jpg cannot be read: No such file or directory"


def break_the_manifest(project):
    (project / "data" / "splits" / "birds.csv").write_text("path,label\na/0.jpg,1\n")
    return "data/splits/birds.csv is no manifest: it has no column role"


def list_other_rows(project):
    manifest = project / "data" / "splits" / "birds.csv"
    manifest.write_text(manifest.read_text().replace("b/0.jpg,2", "b/0.jpg,3"))
    return "differ in 2 rows, the first for b/0.jpg; make the split again"


def damage_the_archive_in_place(project):
    """A flipped byte that neither the size betrays nor the time of its content, in a file known to be right."""
    path = project / "store" / "old things" / "my birds.bin"
    times = path.stat()
    path.write_bytes(BIRDS[:-1] + bytes([BIRDS[-1] ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return "my birds.bin is not birds.tgz: it has the sha256"


def leave_a_web_page(project):
    (project / "store" / "img.zip").write_text("<html>log in")
    return "store/img.zip is not img.zip: it is no whole archive"


@pytest.mark.parametrize(
    "damage",
    [
        change_a_picture,
        lose_a_picture,
        break_the_manifest,
        list_other_rows,
        damage_the_archive_in_place,
        leave_a_web_page,
    ],
    ids=lambda damage: damage.__name__,
)
def test_verifying_finds_each_fault_says_it_in_one_line_and_fails(project, unpacked, capsys, damage):
    output(capsys, "data", "verify")
    message = damage(project)
    lines = output(capsys, "data", "verify", code=1).splitlines()
    (fault,) = (line for line in lines if line.startswith("fault  "))
    assert message in fault
    assert lines[-1] == "1 fault"
    output(capsys, "data", "verify", code=1)


def test_resized_copies_are_verified_too_under_their_own_data_set(project, capsys):
    for path in ("a/0.jpg", "b/0.jpg"):
        (project / "data" / "walkers" / path).parent.mkdir(parents=True)
        Image.new("RGB", (20, 30)).save(project / "data" / "walkers" / path)
    longer_name = project / "params" / "datasets" / "walkers_more.yaml"
    longer_name.write_text((project / "params" / "datasets" / "walkers.yaml").read_text())
    for name in ("walkers", "walkers_more"):
        manifest = project / "data" / "splits" / f"{name}.csv"
        write_manifest(read_split("walkers", project / "data" / "walkers"), manifest, project / "data" / "walkers")
        copy = resized_copy(manifest, project / "data" / "walkers", project / "data" / "pictures", shorter_side_px=8)
    text = output(capsys, "data", "verify", "walkers", "walkers_more")
    assert text.count("ok     walkers: resized copy data/pictures/walkers_8px_png_") == 1
    assert text.count(f"ok     walkers_more: resized copy data/pictures/{copy.root.name}, each byte") == 1
    (copy.root / "a" / "0.jpg").write_bytes(b"")
    text = output(capsys, "data", "verify", "walkers", "walkers_more", code=1)
    assert f"fault  walkers_more: {copy.root / 'a' / '0.jpg'} has other bytes than its manifest says\n" in text
    assert text.endswith("1 fault\n")


def test_a_damaged_archive_is_not_used_once_it_was_verified(project, unpacked, capsys):
    assert "checksum verified" in of(output(capsys, "data", "status", "birds"), "birds")
    damage_the_archive_in_place(project)
    assert "not on disk" in of(output(capsys, "data", "status", "birds"), "birds")
    output(capsys, "data", "verify", "birds", code=1)
    assert "not on disk" in of(output(capsys, "data", "status", "birds"), "birds")


@pytest.mark.parametrize("what", ["status", "verify"])
@pytest.mark.parametrize("content", ["title: [", "title: a\ntitle: b\n", "layout: folder\ntitel: a\n"])
def test_a_broken_specification_is_a_fault_of_its_own_data_set(project, unpacked, capsys, what, content):
    (project / "params" / "datasets" / "clothes.yaml").write_text(content)
    text = output(capsys, "data", what, code=1)
    (fault,) = (line for line in text.splitlines() if line.startswith("fault"))
    assert fault.startswith("fault  clothes: ") and "params/datasets/clothes.yaml" in fault
    assert "Ready: birds" in text if what == "status" else "ok     birds: 1 archive right" in text


@pytest.mark.parametrize("what", ["status", "verify"])
def test_an_archive_that_cannot_be_read_is_a_fault_of_its_own(project, unpacked, capsys, monkeypatch, what):
    (project / "store" / "img.zip").write_bytes(b"x")
    named = {"file": "img.zip", "creates": "img", "size": 1, "sha256": "0" * 64}
    specification = {"title": "some clothes", "layout": "folder", "archives": [named]}
    (project / "params" / "datasets" / "clothes.yaml").write_text(yaml.safe_dump(specification))
    read = checksums.file_digest

    def refused(path, *arguments):
        if path.name == "img.zip":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *arguments)

    monkeypatch.setattr(checksums, "file_digest", refused)
    text = " ".join(output(capsys, "data", what, code=1).split())
    assert "cannot be read: Permission denied" in text and "store/img.zip" in text
    assert ("Ready: birds" if what == "status" else "ok birds: 1 archive right") in text


def test_a_folder_that_cannot_be_read_is_told_and_the_others_too(project, unpacked, capsys, monkeypatch):
    def refused(specification, root):
        if root.name == "clothes":
            raise OSError(errno.EIO, "Input/output error", str(root / "a"))
        return read_layout(specification, root)

    monkeypatch.setattr("lookalike.workflow.data.inventory.read_layout", refused)
    text = output(capsys, "data", "status", code=1)
    assert f"fault  clothes: {project}/data/clothes/a: Input/output error\n" in text
    assert "Ready: birds" in text


def test_a_misspelt_name_is_one_line_and_nothing_else(project, capsys):
    assert main(["data", "status", "birds", "brids"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert (
        captured.err
        == "lookalike: data set: unknown 'brids', did you mean 'birds'? Known: birds, clothes, drawn, walkers\n"
    )


def test_without_a_project_the_command_says_in_one_line_that_it_wants_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path / "site-packages")
    for arguments in (["data", "status"], ["data", "verify", "cub"], ["plan"], ["compare", "a@b", "c@b"]):
        assert main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"lookalike: {tmp_path} is not in a project's folder")
        assert captured.err.count("\n") == 1


def test_the_help_of_each_command_ends_with_an_example_that_it_takes():
    def below(group):
        (kinds,) = [action.choices for action in group._actions if isinstance(action, argparse._SubParsersAction)] or [
            {}
        ]
        return [leaf for each in kinds.values() for leaf in below(each)] if kinds else [group]

    for command in below(parser()):
        last = command.format_help().splitlines()[-1]
        assert last.startswith(f"Example: {command.prog} ") or last == f"Example: {command.prog}"
        taken = parser().parse_args(shlex.split(last.removeprefix("Example: lookalike")))
        assert taken.run is command.get_default("run")


def test_version_and_help_are_told_anywhere_without_a_heavy_library(tmp_path):
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for argument, told in (("--version", f"lookalike {stated}\n"), ("--help", "usage: lookalike")):
        command = [sys.executable, "-X", "importtime", "-m", "lookalike", argument]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(told)
        imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
        assert "lookalike.app.command" in imported
        assert not imported & {"torch", "numpy", "pandas", "yaml"}
    assert lookalike.__version__ == stated


def test_the_command_runs_as_a_module_and_needs_no_torch(project):
    code = "import sys, lookalike.app.command, lookalike.workflow.data.inventory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    command = [sys.executable, "-m", "lookalike", "data", "verify", "drawn"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith("0 faults\n")


def test_a_reader_that_has_seen_enough_is_no_fault_and_a_full_disk_is_one_line():
    line = [sys.executable, "-m", "lookalike", "show", "margin@figurines_birds"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed, Path("/dev/full").open("w") as full:
        ended, told = (
            subprocess.run(line, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
            for out in (closed, full)
        )
    assert (ended.returncode, ended.stderr) == (1, "")
    assert (told.returncode, told.stderr) == (2, f"lookalike: the system: {os.strerror(errno.ENOSPC)}\n")


def test_a_stopped_command_says_so_in_one_line(monkeypatch, capsys):
    def stopped(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("lookalike.app.command._run", stopped)
    assert main(["data", "status"]) == 130
    assert capsys.readouterr().err == "lookalike: stopped\n"
