"""Files are read whole or refused."""

import subprocess
import sys

import pytest
import torch

from disks import small_disk
from lookalike.files import read_about, read_json, read_tensors, write_json, write_tensors, write_text


@pytest.mark.parametrize("read", [read_tensors, read_about])
def test_a_file_that_is_no_tensors_is_named_and_nobody_is_told_to_remove_it(tmp_path, read):
    (tmp_path / "README.md").write_text("# of the user")
    with pytest.raises(ValueError, match="is a folder, no safetensors file"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"README\.md is no whole safetensors file .*results/<scale>/models/") as said:
        read(tmp_path / "README.md")
    assert "remove" not in str(said.value).lower()


@pytest.fixture
def full_disk(tmp_path):
    """A folder on a disk of 64 kB."""
    with small_disk(tmp_path / "disk", "64k") as folder:
        yield folder


def test_a_full_disk_names_the_file_that_it_does_not_take(full_disk):
    for write, content in (
        (write_text, "x" * 10**5),
        (write_json, {"x": "x" * 10**5}),
        (lambda path, tensors: write_tensors(path, tensors, {}), {"x": torch.zeros(10**5)}),
    ):
        with pytest.raises(OSError, match="No space left on device") as said:
            write(full_disk / "result", content)
        assert said.value.filename == str(full_disk / "result")
        assert list(full_disk.iterdir()) == []


@pytest.mark.parametrize("content", ["-1", "[]", "null", '{"a": 1', "\x00"])
def test_what_is_no_mapping_of_json_is_refused_by_its_name(tmp_path, content):
    (tmp_path / "seed0.json").write_text(content)
    with pytest.raises(ValueError, match=r"seed0\.json is no whole JSON file .* Remove it"):
        read_json(tmp_path / "seed0.json")


def test_text_is_utf_8_whatever_the_locale_says(tmp_path):
    script = (
        "from lookalike.files import read_json, write_json; write_json('names.json', {'λ': 'Gänsesäger'});"
        "assert read_json('names.json') == {'λ': 'Gänsesäger'};"
        "from lookalike.files import write_text; write_text('page.html', 'λ = 0,4')"
    )
    # A warning wherever a file is opened as the locale would have it, as Windows does with one of its code pages.
    run = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning:lookalike.files", "-c", script]
    subprocess.run(run, cwd=tmp_path, check=True)
    assert (tmp_path / "page.html").read_bytes() == "λ = 0,4".encode()
