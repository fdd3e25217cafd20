"""A folder is known by the names and bytes of its files, each of which is read once."""

import json
import os

import pytest

from lookalike.workflow.data import contents
from lookalike.workflow.data.contents import contents_digest, root_of


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "pictures"
    for name in ("a/1.png", "a/2.png", "b/1.png", "hierarchy.csv"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.fixture
def digest(folder, tmp_path):
    return lambda: contents_digest(folder, tmp_path / "record.json")


def add_class(root):
    (root / "c").mkdir()
    (root / "c" / "1.png").write_text("c")


CHANGES = {
    "a class more": add_class,
    "a picture in another class": lambda root: (root / "a/2.png").rename(root / "b/2.png"),
    "a picture less": lambda root: (root / "a/2.png").unlink(),
    "other bytes of one size": lambda root: (root / "a/2.png").write_text("a/3.png"),
    "another hierarchy": lambda root: (root / "hierarchy.csv").write_text("class"),
    "a link to a folder": lambda root: (root / "d").symlink_to(root / "a"),
    "a link to the folder itself": lambda root: (root / "all").symlink_to(root),
    "a link that leads nowhere": lambda root: (root / "a/3.png").symlink_to("nowhere"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_another_digest_and_put_back_the_same(folder, digest, change):
    before = digest()
    change(folder)
    after = digest()
    assert before != after == digest()


def test_bytes_that_change_at_an_unchanged_time_are_noticed(folder, digest):
    before, about = digest(), (folder / "a/1.png").stat()
    (folder / "a/1.png").write_text("A/1.png")
    os.utime(folder / "a/1.png", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert digest() != before


def test_hidden_files_and_those_of_desktop_systems_do_not_count(folder, digest):
    before = digest()
    for name in (".lookalike", "a/.DS_Store", "Thumbs.db", "a/._1.png"):
        (folder / name).write_text(name)
    assert digest() == before


def test_a_moved_folder_and_touched_files_are_the_same_and_a_file_is_read_once(folder, digest, tmp_path, monkeypatch):
    before, read = digest(), []
    monkeypatch.setattr(contents, "file_digest", lambda path: read.append(path) or "other")
    assert digest() == before
    assert read == []
    monkeypatch.undo()
    for path in folder.rglob("*.png"):
        path.touch()
    folder.rename(tmp_path / "moved")
    assert contents_digest(tmp_path / "moved", tmp_path / "record.json") == before
    assert root_of(tmp_path / "record.json") == tmp_path / "moved"


def test_a_name_that_is_no_utf8_and_a_broken_record_are_no_obstacle(folder, digest, tmp_path):
    before = digest()
    (tmp_path / "record.json").write_text(json.dumps({"files": {"a/1.png": 3}}))
    assert digest() == before
    (folder / os.fsdecode(b"\xff.png")).write_text("odd")
    assert before != digest() == digest()
    (tmp_path / "record.json").write_text("{")
    assert root_of(tmp_path / "record.json") is None
