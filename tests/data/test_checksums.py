"""A digest is remembered for as long as a file is what it was."""

import os
import shutil

import pytest

from lookalike.data import checksums
from lookalike.data.checksums import file_digest, forget, mismatch, move_remembered, remembered_digest


@pytest.fixture
def read(monkeypatch):
    """Names of the files whose bytes were read."""
    names = []

    def noted(path, algorithm="sha256"):
        names.append(path.name)
        return file_digest(path, algorithm)

    monkeypatch.setattr(checksums, "file_digest", noted)
    return names


def test_a_file_is_read_once_for_each_algorithm_until_it_is_forgotten(tmp_path, read):
    path = tmp_path / "a.zip"
    path.write_bytes(b"content")
    for _ in range(2):
        assert remembered_digest(path, "sha256", tmp_path) == file_digest(path)
    assert read == ["a.zip"]
    assert remembered_digest(path, "md5", tmp_path) == file_digest(path, "md5")
    assert len(read) == 2
    forget(path, tmp_path)
    remembered_digest(path, "sha256", tmp_path)
    assert len(read) == 3


@pytest.mark.parametrize("copied", [False, True])
def test_other_bytes_of_the_same_size_and_time_are_read_again(tmp_path, copied):
    path, other = tmp_path / "a.zip", tmp_path / "b.zip"
    path.write_bytes(b"right")
    other.write_bytes(b"wrong")
    for each in (path, other):
        os.utime(each, ns=(10**18, 10**18))
    archive = {"file": "a.zip", "sha256": file_digest(path)}
    assert mismatch(path, archive, tmp_path) == ""
    if copied:
        shutil.copy2(other, path)
    else:
        other.replace(path)
    assert path.stat().st_mtime_ns == 10**18
    assert mismatch(path, archive, tmp_path).startswith("has the sha256 ")


def test_a_file_that_is_renamed_is_not_read_again(tmp_path, read):
    part, target = tmp_path / "a.zip.part", tmp_path / "a.zip"
    part.write_bytes(b"content")
    digest = remembered_digest(part, "sha256", tmp_path)
    assert move_remembered(part, target, tmp_path) == target
    assert remembered_digest(target, "sha256", tmp_path) == digest
    assert read == ["a.zip.part"]
