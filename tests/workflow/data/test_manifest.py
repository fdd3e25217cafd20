import hashlib

import pandas as pd
import pytest

from described import read_layout
from lookalike.workflow.data import manifest_hash, read_manifest, with_file_hashes, write_manifest

FOLDER = {"title": "mine", "layout": "folder"}


@pytest.fixture
def root(tmp_path):
    for name, content in (("a/0.jpg", b"0"), ("a/1 #, \u00e9.jpg", b"11"), ("b/0.jpg", b"2")):
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_bytes(content)
    return tmp_path / "mine"


def test_a_manifest_comes_back_as_it_was(root, tmp_path):
    frame = with_file_hashes(read_layout(FOLDER, root), root)
    frame["box_x"] = [0.1, 1e17, 1 / 3]
    frame["camera"] = [1, 2, 3]
    frame["mask"] = ["NA", "null", "m"]
    write_manifest(frame, tmp_path / "new" / "split.csv")
    back = read_manifest(tmp_path / "new" / "split.csv")
    expected = frame.sort_values(["role", "path"], ignore_index=True)
    pd.testing.assert_frame_equal(back, expected)


def test_the_hash_is_that_of_the_file_and_of_the_rows_in_any_order(root, tmp_path):
    frame = read_layout(FOLDER, root)
    stated = write_manifest(frame, tmp_path / "split.csv")
    assert stated == hashlib.sha256((tmp_path / "split.csv").read_bytes()).hexdigest()
    assert stated == manifest_hash(frame.iloc[::-1]) == manifest_hash(read_manifest(tmp_path / "split.csv"))


def test_a_changed_byte_changes_the_manifest(root, tmp_path):
    frame = read_layout(FOLDER, root)
    before = write_manifest(frame, tmp_path / "split.csv", root)
    rows = read_manifest(tmp_path / "split.csv").set_index("path")
    assert rows.loc["a/0.jpg", "bytes"] == 1
    assert rows.loc["a/0.jpg", "sha256"] == hashlib.sha256(b"0").hexdigest()
    (root / "a" / "0.jpg").write_bytes(b"1")
    assert write_manifest(frame, tmp_path / "split.csv", root) != before


def test_masks_are_hashed_too(root):
    frame = read_layout(FOLDER, root).assign(mask="b/0.jpg")
    assert set(with_file_hashes(frame, root)["mask_sha256"]) == {hashlib.sha256(b"2").hexdigest()}


def test_an_empty_image_is_named_and_nothing_is_written(root, tmp_path):
    (root / "b" / "0.jpg").write_bytes(b"")
    with pytest.raises(ValueError, match=r"b/0\.jpg is empty"):
        write_manifest(read_layout(FOLDER, root), tmp_path / "split.csv", root)
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}


def test_a_file_that_is_no_manifest_is_refused(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        read_manifest(tmp_path / "split.csv")
    (tmp_path / "split.csv").write_text("path,label\na,1\n")
    with pytest.raises(ValueError, match="is no manifest: it has no column role"):
        read_manifest(tmp_path / "split.csv")
