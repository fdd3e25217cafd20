"""Files are read whole or refused."""

import ast
import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

from disks import small_disk
from lookalike.base.files import json_text, read_about, read_json, read_tensors, write_json, write_tensors, write_text
from projects import ROOT


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
        "from lookalike.base.files import read_json, write_json; write_json('names.json', {'λ': 'Gänsesäger'});"
        "assert read_json('names.json') == {'λ': 'Gänsesäger'};"
        "from lookalike.base.files import write_text; write_text('page.html', 'λ = 0,4')"
    )
    # A warning wherever a file is opened as the locale would have it, as Windows does with one of its code pages.
    run = [
        sys.executable,
        "-X",
        "warn_default_encoding",
        "-W",
        "error::EncodingWarning:lookalike.base.files",
        "-c",
        script,
    ]
    subprocess.run(run, cwd=tmp_path, check=True)
    assert (tmp_path / "page.html").read_bytes() == "λ = 0,4".encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_neither_written_nor_read(tmp_path, value):
    with pytest.raises(ValueError, match=r"a\.json: rows\[1\]\.score is -?(nan|inf); JSON has finite numbers alone"):
        write_json(tmp_path / "a.json", {"rows": [{"score": 1.0}, {"score": value}]})
    with pytest.raises(ValueError, match=r"--json: a number is -?(nan|inf)"):
        json_text(value, where="--json")
    (tmp_path / "b.json").write_text(json.dumps({"score": value}))
    with pytest.raises(ValueError, match=r"b\.json is no whole JSON file \(-?(NaN|Infinity) is no number of JSON\)"):
        read_json(tmp_path / "b.json")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        tensors = {"whole": torch.arange(3), "empty": torch.zeros(0), "x": torch.tensor([1.0, value], dtype=dtype)}
        with pytest.raises(ValueError, match=r"a\.safetensors: x holds NaN or infinity"):
            write_tensors(tmp_path / "a.safetensors", tensors, {})
        save_file(tensors, tmp_path / "b.safetensors")
        with pytest.raises(ValueError, match=r"b\.safetensors: x holds NaN or infinity"):
            read_tensors(tmp_path / "b.safetensors")
    with pytest.raises(ValueError, match=r"a\.safetensors: score is -?(nan|inf)"):
        write_tensors(tmp_path / "a.safetensors", {}, {"score": value})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.json", "b.safetensors"]


def test_whatever_writes_json_refuses_what_is_no_number():
    found = []
    # `figurines` draws data by whose code DVC knows them; its one JSON holds whole numbers and names.
    for path in [*(ROOT / "src" / "lookalike").rglob("*.py"), *(ROOT / "workflow").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.dump", "json.dumps"):
                options = {each.arg: ast.unparse(each.value) for each in node.keywords}
                found.append((path.name, node.lineno, options.get("allow_nan")))
    assert found and [each for each in found if each[2] != "False"] == []


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_every_file_can_be_read_by_whom_the_umask_lets_read(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a.txt", "a")
        write_json(tmp_path / "a.json", {})
        write_tensors(tmp_path / "a.safetensors", {"x": torch.zeros(2)}, {})
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == dict.fromkeys(
        ("a.txt", "a.json", "a.safetensors"), mode
    )
