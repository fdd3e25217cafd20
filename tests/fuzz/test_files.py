"""Pictures, archives, tensors and numbers, spoiled: what they hold, or one line with the file's name."""

import io
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from PIL import Image

from lookalike.base.files import read_json, read_tensors, write_json, write_tensors
from lookalike.workflow.data.pictures import read_picture
from spoiled import examples, read_or_refused, spoiled_bytes, spoiled_text, written
from tars import unpack

PICTURES = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
ARCHIVES = ("tar", "tar.gz", "tar.bz2", "tar.xz", "zip")


def picture(kind):
    noise = np.random.default_rng(0).integers(0, 256, (12, 9, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.filterwarnings("ignore")  # of Pillow, about what it reads all the same
def test_a_spoiled_picture_is_read_in_rgb_or_refused_by_its_name(kind, tmp_path):
    path = tmp_path / "picture"

    @examples(0.16 / len(PICTURES))
    @given(spoiled_bytes(picture(kind)))
    def try_it(content):
        found = read_or_refused(lambda: read_picture(written(path, content)))
        assert found is None or (found.mode == "RGB" and min(found.size) >= 1)

    try_it()


def archive(kind):
    stream = io.BytesIO()
    files = {"data/a.txt": b"a" * 50, "data/b/c.txt": b"c" * 2000, "data/empty": b""}
    if kind == "zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
            for name, content in files.items():
                opened.writestr(name, content)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode=f"w:{kind.partition('.')[2]}") as opened:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            opened.addfile(header, io.BytesIO(content))
    return stream.getvalue()


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_spoiled_archive_is_unpacked_into_its_folder_or_leaves_nothing(kind, tmp_path):
    path, target = tmp_path / "archive", tmp_path / "inside" / "unpacked"

    @examples(0.1 / len(ARCHIVES))
    @given(spoiled_bytes(archive(kind)))
    def try_it(content):
        found = read_or_refused(lambda: unpack(written(path, content), target))
        left = sorted(entry.name for entry in target.parent.iterdir() if not entry.name.endswith(".lock"))
        assert left == ([target.name] if found else []), left
        assert {entry.name for entry in tmp_path.iterdir()} == {"archive", "inside"}
        if target.exists():
            shutil.rmtree(target)

    try_it()


def test_spoiled_tensors_are_read_or_refused_by_their_file(tmp_path):
    path = tmp_path / "seed0.safetensors"
    write_tensors(path, {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.zeros(2)}, {"seed": 0})
    whole = path.read_bytes()

    @examples(0.04)
    @given(spoiled_bytes(whole))
    def try_it(content):
        read_or_refused(lambda: read_tensors(written(path, content)))

    try_it()


def test_spoiled_metrics_are_read_or_refused_by_their_file(tmp_path):
    path = tmp_path / "seed0.json"
    write_json(path, {"best": {"R@1": 0.5, "MAP@R": 0.25}, "last": {"R@1": 0.5}, "data": "0123"})
    whole = path.read_text()

    @examples(0.05)
    @given(spoiled_text(whole))
    def try_it(content):
        found = read_or_refused(lambda: read_json(written(path, content)))
        assert found is None or isinstance(found, dict)

    try_it()
