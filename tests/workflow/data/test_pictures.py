import errno
import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pillow_heif
import pytest
from PIL import Image, ImageFile, ImageOps
from torchvision.transforms import v2

from described import read_layout
from lookalike.workflow.data import copy_faults, read_manifest, read_picture, resized_copy, write_manifest
from lookalike.workflow.data.pictures import read_sent
from lookalike.workflow.data.rgb import as_rgb

SIZES = {"a/wide.jpg": (61, 37), "a/high.JPG": (20, 45), "b/square.png": (30, 30), "b/small.png": (9, 7)}


@pytest.fixture
def originals(tmp_path):
    """Manifest and root of four pictures, one of them grey."""
    root = tmp_path / "originals"
    generator = np.random.default_rng(0)
    for path, (width, height) in SIZES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        channels = () if "square" in path else (3,)
        pixels = generator.integers(0, 256, (height, width, *channels), dtype=np.uint8)
        Image.fromarray(pixels).save(root / path)
    write_manifest(read_layout({"layout": "folder"}, root), tmp_path / "few.csv", root)
    return tmp_path / "few.csv", root


def break_a_picture(originals):
    """Cut one short, and record that in the manifest, as a split of such a data set would."""
    manifest, root = originals
    path = root / "a" / "wide.jpg"
    path.write_bytes(path.read_bytes()[:-300])
    write_manifest(read_layout({"layout": "folder"}, root), manifest, root)
    return path


def noted(orientation, *others):
    """EXIF with an orientation and other entries of tag, type, count and four bytes."""
    entries = [struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0), *(struct.pack(">HHI4s", *each) for each in others)]
    return b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">H", len(entries)) + b"".join(entries) + bytes(4)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["png", "tif", "webp"])
def test_a_picture_is_turned_once_whatever_it_is_kept_as(tmp_path, kind, orientation):
    stored, note = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)), Image.Exif()
    note[0x0112] = orientation
    stored.save(tmp_path / f"turned.{kind}", exif=note, lossless=True)
    with Image.open(tmp_path / f"turned.{kind}") as picture:
        assert np.array_equal(read_picture(tmp_path / f"turned.{kind}"), ImageOps.exif_transpose(picture))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_its_camera_has_noted_whatever_else_it_notes(tmp_path, orientation):
    stored = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8))
    stored.save(tmp_path / "plain.png", exif=noted(orientation))
    with Image.open(tmp_path / "plain.png") as plain:
        assert np.array_equal(read_picture(tmp_path / "plain.png"), ImageOps.exif_transpose(plain))
    assert as_rgb(turned := read_picture(tmp_path / "plain.png")) == turned  # and once only
    stored.save(tmp_path / "odd.png", exif=noted(orientation, (0x011A, 2, 3, b"72\0\0")))  # a resolution that is text
    assert np.array_equal(read_picture(tmp_path / "odd.png"), read_picture(tmp_path / "plain.png"))


@pytest.mark.parametrize("error", [TypeError, IndexError, EOFError, struct.error, RuntimeError, zlib.error])
def test_what_breaks_within_pillow_is_a_broken_picture(tmp_path, monkeypatch, error):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    monkeypatch.setattr(ImageFile.ImageFile, "load", Mock(side_effect=error("odd")))
    with pytest.raises(ValueError, match=r"a\.png: no readable picture \(odd\)"):
        read_picture(tmp_path / "a.png")


def test_what_somebody_sends_is_measured_before_it_is_decoded(tmp_path, monkeypatch):
    def sent(size, kind="PNG"):
        Image.new("RGB", size, (9, 90, 200)).save(tmp_path / "sent", kind)
        return (tmp_path / "sent").read_bytes()

    assert read_sent(sent((30, 20))).getpixel((3, 3)) == (9, 90, 200)
    monkeypatch.setattr(ImageFile.ImageFile, "load", Mock(side_effect=AssertionError("decoded")))
    for data, said in (
        (sent((9000, 8000)), "9000 x 8000 pixels; at most 64,000,000 are decoded"),
        (sent((1, 4000)), "1 x 4000 pixels; one side may be 50 times as long"),
        (sent((8, 8), "EPS"), "none of AVIF, BMP"),  # which Pillow hands to another program
        (b"", "none of AVIF"),
    ):
        with pytest.raises(ValueError, match=said):
            read_sent(data)


def test_a_picture_that_is_a_line_would_fill_the_memory_and_is_refused(tmp_path):
    Image.new("L", (1, 20_000)).save(tmp_path / "line.png")
    with pytest.raises(ValueError, match=r"line\.png: 1 x 20000 pixels; one side may be 50 times as long"):
        read_picture(tmp_path / "line.png")


@pytest.mark.parametrize("kind", ["I;16", "I;16B"])
def test_sixteen_bits_are_brought_to_eight(tmp_path, kind):
    pixels = np.arange(0, 2**16, 257, dtype=np.uint16).reshape(16, 16)
    kept = pixels.astype(">u2") if kind.endswith("B") else pixels
    Image.fromarray(kept).save(tmp_path / "deep.tif")
    assert Image.open(tmp_path / "deep.tif").mode == kind
    expected = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    assert np.array_equal(np.asarray(read_picture(tmp_path / "deep.tif")), expected)


def written(folder, kind, values):
    """A grey picture of 12 bits in a kind that states its range."""
    path, (height, width) = folder / f"deep.{kind}", values.shape
    if kind == "pgm":
        path.write_bytes(b"P5\n%d %d\n4095\n" % (width, height) + values.astype(">u2").tobytes())
        return path
    if kind == "plain.pgm":
        path.write_text(f"P2\n{width} {height}\n4095\n" + " ".join(map(str, values.ravel())))
        return path
    pairs = values.reshape(-1, 2).astype(np.uint32)
    packed = (pairs[:, 0] << 12 | pairs[:, 1]).astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    tags = {256: width, 257: height, 258: 12, 259: 1, 262: 1, 273: 8, 277: 1, 278: height, 279: len(packed)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    head = struct.pack("<2sHI", b"II", 42, 8 + len(packed)) + packed
    path.write_bytes(head + struct.pack("<H", len(tags)) + entries + bytes(4))
    return path


@pytest.mark.parametrize("kind", ["pgm", "plain.pgm", "tif"])
def test_a_range_that_the_file_states_is_brought_to_eight_bits(tmp_path, kind):
    values = (np.arange(256) * 4095 / 255).round().astype(np.uint16).reshape(16, 16)
    expected = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    assert np.array_equal(np.asarray(read_picture(written(tmp_path, kind, values))), expected)


@pytest.mark.parametrize("kind", ["avif", "jfif", "jpe", "jp2", "tga", "heic"])
def test_kinds_beside_the_usual_ones_are_read(tmp_path, kind):
    pillow_heif.register_heif_opener()  # which writes, too
    whole = Image.new("RGB", (48, 32), (200, 40, 40))
    whole.paste((40, 40, 200), (24, 0, 48, 32))
    whole.save(tmp_path / f"a.{kind}")
    seen = np.asarray(read_picture(tmp_path / f"a.{kind}")).astype(int)
    assert seen.shape == (32, 48, 3)
    assert np.abs(seen[:, [4, 44]] - np.asarray(whole).astype(int)[:, [4, 44]]).max() < 20


@pytest.mark.parametrize("name", ["a.HEIC", "a.jpg"])  # telephones call them either
def test_without_its_library_a_picture_of_a_telephone_says_what_it_needs(tmp_path, name):
    pillow_heif.from_pillow(Image.new("RGB", (32, 32), "red")).save(tmp_path / "a.heic")
    (tmp_path / "a.heic").rename(tmp_path / name)
    code = f"""
import sys
sys.modules["pillow_heif"] = None
from lookalike.workflow.data import read_picture
from pathlib import Path
read_picture(Path({str(tmp_path / name)!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(
        f"{name}: no readable picture (HEIC needs lookalike's extra `heic`; in the project's folder: "
        "uv pip install '.[heic]')"
    )


def test_the_preview_of_a_raw_file_is_not_taken_for_the_picture(tmp_path):
    Image.new("RGB", (16, 12)).save(tmp_path / "a.tif")
    (tmp_path / "a.tif").rename(tmp_path / "a.NEF")
    with pytest.raises(ValueError, match=r"a\.NEF: no readable picture \(\.NEF is not read; save it as JPEG or PNG\)"):
        read_picture(tmp_path / "a.NEF")


def test_what_is_transparent_lies_over_white(tmp_path):
    pixels = np.array([[[255, 0, 0, 255], [255, 0, 0, 0], [255, 0, 0, 128]]], dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "clear.png")
    assert np.array_equal(
        np.asarray(read_picture(tmp_path / "clear.png"))[0], [[255, 0, 0], [255, 255, 255], [255, 127, 127]]
    )
    Image.new("P", (2, 2)).save(tmp_path / "palette.png", transparency=0)
    assert np.asarray(read_picture(tmp_path / "palette.png")).min() == 255


def test_pixels_of_unknown_range_are_refused(tmp_path):
    Image.fromarray(np.zeros((2, 2), dtype=np.float32)).save(tmp_path / "real.tif")
    with pytest.raises(ValueError, match=r"real\.tif: no readable picture \(pixels of mode F have no stated range"):
        read_picture(tmp_path / "real.tif")


@pytest.mark.parametrize("side", [16, 30])
def test_a_view_of_that_size_sees_the_same_pixels_in_the_copy(originals, tmp_path, side):
    manifest, root = originals
    copy = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=side)
    resize = v2.Resize(side)
    for path in SIZES:
        expected = np.asarray(resize(Image.open(root / path).convert("RGB")))
        assert min(expected.shape[:2]) == side
        assert np.array_equal(np.asarray(resize(read_picture(copy.root / path))), expected)


def test_jpeg_is_smaller_and_close(originals, tmp_path):
    manifest, root = originals
    png = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)
    jpeg = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16, encoding="jpeg")
    assert png.root != jpeg.root
    with Image.open(jpeg.root / "b" / "square.png") as picture:
        assert (picture.format, picture.size) == ("JPEG", (16, 16))
    assert (jpeg.root / "a" / "wide.jpg").stat().st_size < (png.root / "a" / "wide.jpg").stat().st_size


def test_the_copys_manifest_has_the_originals_rows_and_its_own_hashes(originals, tmp_path):
    manifest, root = originals
    copy = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)
    before, after = read_manifest(manifest), read_manifest(copy.manifest)
    columns = ["path", "label", "role"]
    assert after[columns].equals(before[columns])
    assert not set(after["sha256"]) & set(before["sha256"])
    assert copy_faults(copy.root) == []
    assert copy.skipped == ()


def test_boxes_and_masks_of_the_originals_are_left_out(originals, tmp_path):
    manifest, root = originals
    frame = read_manifest(manifest).assign(box_x=1.0, box_y=1.0, box_width=5.0, box_height=5.0, mask="m.png")
    write_manifest(frame, manifest)
    copy = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)
    assert list(read_manifest(copy.manifest)) == ["path", "label", "role", "bytes", "sha256"]


def test_a_copy_is_written_once_and_shared(originals, tmp_path):
    manifest, root = originals
    first = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)
    written = {path: path.stat().st_mtime_ns for path in first.root.rglob("*")}
    (root / "a").rename(root / "gone")
    assert resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16) == first
    assert {path: path.stat().st_mtime_ns for path in first.root.rglob("*")} == written


def test_other_originals_get_another_copy(originals, tmp_path):
    manifest, root = originals
    first = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)
    Image.new("RGB", (20, 20)).save(root / "b" / "small.png")
    write_manifest(read_layout({"layout": "folder"}, root), manifest, root)
    second = resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)
    assert second.root != first.root
    assert read_picture(second.root / "b" / "small.png").getextrema() == ((0, 0),) * 3


def test_a_picture_that_cannot_be_read_stops_the_copy_by_its_name(originals, tmp_path):
    path = break_a_picture(originals)
    with pytest.raises(ValueError, match=rf"{path}: no readable picture \(.*truncated"):
        resized_copy(*originals, tmp_path / "copies", shorter_side_px=16)
    assert {entry.suffix for entry in (tmp_path / "copies").iterdir()} == {".lock"}


def test_pictures_that_cannot_be_read_are_skipped_by_choice_with_their_number(originals, tmp_path, caplog):
    path = break_a_picture(originals)
    for _ in range(2):
        copy = resized_copy(*originals, tmp_path / "copies", shorter_side_px=16, broken="skip")
        assert copy.skipped == ("a/wide.jpg",)
        assert "1 picture skipped, the first is a/wide.jpg" in caplog.text
        caplog.clear()
    assert set(read_manifest(copy.manifest)["path"]) == set(SIZES) - {"a/wide.jpg"}
    with pytest.raises(ValueError, match=rf"{path}: no readable picture, one of 1 that .* lacks"):
        resized_copy(*originals, tmp_path / "copies", shorter_side_px=16)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.jpg", b"no picture"),
        ("empty.png", b""),
        ("header.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("gone.png", None),
    ],
)
def test_a_file_that_is_no_picture_is_named(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}: no readable picture"):
        read_picture(tmp_path / name)


def test_a_picture_that_is_a_bomb_is_named(tmp_path, monkeypatch):
    Image.new("RGB", (100, 100)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(ValueError, match=r"bomb\.png: no readable picture \(.*decompression bomb"):
        read_picture(tmp_path / "bomb.png")


def test_a_damaged_copy_is_not_used_and_says_what_to_remove(originals, tmp_path):
    copy = resized_copy(*originals, tmp_path / "copies", shorter_side_px=16)
    picture = copy.root / "a" / "wide.jpg"
    content = picture.read_bytes()
    times = picture.stat().st_mtime_ns
    picture.write_bytes(content[:-1] + b"x")
    os.utime(picture, ns=(times, times))
    for sizes_only in (True, False):
        assert copy_faults(copy.root, sizes_only=sizes_only) == [f"{picture} has other bytes than its manifest says"]
    picture.write_bytes(content)
    assert copy_faults(copy.root, sizes_only=True) == copy_faults(copy.root) == []
    picture.write_bytes(content[:-1])
    with pytest.raises(
        ValueError, match=rf"{picture} has .* bytes instead of .* remove .*16px.* to have it written anew"
    ):
        resized_copy(*originals, tmp_path / "copies", shorter_side_px=16)
    picture.unlink()
    assert copy_faults(copy.root, sizes_only=True) == [f"{picture} does not exist"]
    copy.manifest.write_text(copy.manifest.read_text().replace("square", "circle"))
    assert "has other rows than were written" in copy_faults(copy.root)[0]
    copy.manifest.unlink()
    assert "is no whole copy" in copy_faults(copy.root)[0]


def test_a_full_disk_leaves_no_copy_and_the_same_call_finishes(originals, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Image.Image, "save", full)
        with pytest.raises(OSError, match="No space left on device"):
            resized_copy(*originals, tmp_path / "copies", shorter_side_px=16, broken="skip")
    assert {entry.suffix for entry in (tmp_path / "copies").iterdir()} == {".lock"}
    assert copy_faults(resized_copy(*originals, tmp_path / "copies", shorter_side_px=16).root) == []


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"shorter_side_px": 0}, "shorter_side_px=0"),
        ({"encoding": "gif"}, "encoding: unknown 'gif'"),
        ({"broken": "ignore"}, "broken='ignore' is not allowed; allowed: stop, skip"),
    ],
)
def test_settings_that_are_not_allowed_are_refused(originals, tmp_path, setting, message):
    with pytest.raises(ValueError, match=message):
        resized_copy(*originals, tmp_path / "copies", **{"shorter_side_px": 16, **setting})
    assert not (tmp_path / "copies").exists()


def test_a_manifest_without_hashes_is_refused(originals, tmp_path):
    manifest, root = originals
    write_manifest(read_manifest(manifest)[["path", "label", "role"]], manifest)
    with pytest.raises(ValueError, match=r"few\.csv has no column sha256"):
        resized_copy(manifest, root, tmp_path / "copies", shorter_side_px=16)


RESIZE = """
import json, sys, time
from pathlib import Path
from lookalike.workflow.data import pictures
read, read_before = pictures.read_picture, []
def slow(path):
    read_before.append(path)
    if len(read_before) == int(sys.argv[2]):
        print("half", flush=True)
        time.sleep(600)
    print("read", flush=True)
    return read(path)
pictures.read_picture = slow
manifest, root, folder = map(Path, json.loads(sys.argv[1]))
print(pictures.resized_copy(manifest, root, folder, shorter_side_px=16, threads=1).root, flush=True)
"""


def start(originals, folder, stop_at=0):
    command = [sys.executable, "-c", RESIZE, json.dumps([str(path) for path in (*originals, folder)]), str(stop_at)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_one_copy(originals, tmp_path):
    processes = [start(originals, tmp_path / "copies") for _ in range(2)]
    lines = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert lines[0][-1] == lines[1][-1]
    assert sorted(len(each) - 1 for each in lines) == [0, len(SIZES)]  # one read all pictures, the other none
    assert copy_faults(Path(lines[0][-1])) == []


def test_a_process_killed_half_way_leaves_no_copy_and_the_same_call_finishes(originals, tmp_path):
    with start(originals, tmp_path / "copies", stop_at=3) as process:
        assert [process.stdout.readline() for _ in range(3)] == ["read\n", "read\n", "half\n"]
        os.kill(process.pid, signal.SIGKILL)
    assert not list((tmp_path / "copies").glob("few_*"))
    copy = resized_copy(*originals, tmp_path / "copies", shorter_side_px=16)
    assert copy_faults(copy.root) == []
    assert not list((tmp_path / "copies").glob(".*.partial"))
