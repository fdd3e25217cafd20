"""A recorded digest serves for as long as a file is what it was."""

import os
import shutil

import pytest

from lookalike.base.files import file_digest
from lookalike.workflow.data import checksums
from lookalike.workflow.data.checksums import RECORD, mismatch, record_digest, recorded_digest
from lookalike.workflow.settings.datasets import Archive


@pytest.fixture
def read(monkeypatch):
    """Names of the files whose bytes were read."""
    names = []

    def noted(path, algorithm="sha256"):
        names.append(path.name)
        return file_digest(path, algorithm)

    monkeypatch.setattr(checksums, "file_digest", noted)
    return names


def test_a_file_is_read_once_unless_it_is_to_be_read_anew(tmp_path, read):
    path = tmp_path / "a.zip"
    path.write_bytes(b"content")
    for _ in range(2):
        assert recorded_digest(path, "sha256", tmp_path) == file_digest(path)
    assert len(read) == 1
    assert recorded_digest(path, "md5", tmp_path) == file_digest(path, "md5")
    assert len(read) == 2
    recorded_digest(path, "md5", tmp_path, anew=True)
    assert len(read) == 3


def test_what_is_known_is_recorded_without_reading_and_a_broken_record_is_none(tmp_path, read):
    path = tmp_path / "a.zip"
    path.write_bytes(b"content")
    record_digest(path, "sha256", "0123", tmp_path)
    assert recorded_digest(path, "sha256", tmp_path) == "0123"
    assert read == []
    for broken in ("{broken", "[]", '{"a.zip": "of an earlier form"}'):
        (tmp_path / RECORD).write_text(broken)
        assert recorded_digest(path, "sha256", tmp_path) == file_digest(path)


@pytest.mark.parametrize("copied", [False, True])
def test_other_bytes_of_the_same_size_and_time_are_read_again(tmp_path, copied):
    path, other = tmp_path / "a.zip", tmp_path / "b.zip"
    path.write_bytes(b"right")
    other.write_bytes(b"wrong")
    for each in (path, other):
        os.utime(each, ns=(10**18, 10**18))
    archive = Archive(file="a.zip", creates="a", sha256=file_digest(path))
    assert mismatch(path, archive, tmp_path) == ""
    if copied:
        shutil.copy2(other, path)
    else:
        other.replace(path)
    assert path.stat().st_mtime_ns == 10**18
    assert mismatch(path, archive, tmp_path).startswith("has the sha256 ")
