"""Folders are listed as people see them, and what cannot be read is named."""

import os

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.app.own.picture_files import image_batches, pictures_in, read_image
from own_pictures import opened, write_pictures


def test_pictures_at_any_depth_are_listed_by_name_with_size_and_time(tmp_path):
    paths = write_pictures(tmp_path, 6)
    for junk in (".hidden/x.png", "notes.txt", "._1.png", "Thumbs.db", "deep/er/last.JPG"):
        (tmp_path / junk).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / junk).write_bytes(b"x")
    listed = pictures_in(tmp_path)
    expected = sorted([path.relative_to(tmp_path).as_posix() for path in paths] + ["deep/er/last.JPG"])
    assert [stamp.name for stamp in listed] == expected
    state = (tmp_path / listed[0].name).stat()
    assert (listed[0].size, listed[0].changed) == (state.st_size, state.st_mtime_ns)


def test_folders_that_lead_back_to_themselves_end(tmp_path):
    write_pictures(tmp_path, 2)
    (tmp_path / "even" / "again").symlink_to(tmp_path)
    assert len(pictures_in(tmp_path)) == 2


def test_folders_without_pictures_are_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"holds no picture by name, such as \.jpg"):
        pictures_in(tmp_path)
    with pytest.raises(ValueError, match="nowhere: no such folder"):
        pictures_in(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"notes\.txt: not a folder"):
        pictures_in(tmp_path / "notes.txt")


def test_a_picture_of_one_pixel_is_an_image_and_one_that_is_a_line_is_refused(tmp_path):
    model = opened()
    Image.new("RGB", (1, 1), "red").save(tmp_path / "dot.png")
    assert read_image(model, tmp_path / "dot.png").shape == (3, 24, 24)
    Image.new("L", (20_000, 1)).save(tmp_path / "line.png")
    with pytest.raises(ValueError, match=r"line\.png: 20000 x 1 pixels; one side may be 50 times as long"):
        read_image(model, tmp_path / "line.png")


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_hold_what_can_be_read_in_order_and_name_the_rest(tmp_path, threads):
    paths = write_pictures(tmp_path, 7)
    paths[3].write_bytes(b"no picture")
    model = opened()
    rows, images, faults = [], [], {}
    for some, batch, wrong in image_batches(model, paths, batch_size=3, threads=threads):
        rows += some
        images += list(batch)
        faults |= wrong
    assert rows == [0, 1, 2, 4, 5, 6]
    for row, image in zip(rows, images, strict=True):
        assert torch.equal(image, read_image(model, paths[row]))
    assert list(faults) == [3] and "003.png: no readable picture" in faults[3]


def test_a_batch_of_which_nothing_can_be_read_is_passed_over(tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(2)]
    for path in paths:
        path.write_bytes(os.urandom(10))
    ((rows, images, faults),) = image_batches(opened(), paths, batch_size=2, threads=1)
    assert rows == [] and len(images) == 0 and list(faults) == [0, 1]


def test_what_the_model_sees_is_the_centre_resized(tmp_path):
    pixels = np.zeros((56, 28, 3), dtype=np.uint8)
    pixels[14:42] = 255  # the middle half
    Image.fromarray(pixels).save(tmp_path / "bar.png")
    assert float(read_image(opened(), tmp_path / "bar.png").min()) > 2


def test_linked_folders_are_listed_as_the_layouts_read_them(tmp_path):
    write_pictures(tmp_path / "elsewhere", 2)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "linked").symlink_to(tmp_path / "elsewhere")
    assert [stamp.name for stamp in pictures_in(tmp_path / "pictures")] == ["linked/even/000.png", "linked/odd/001.png"]


def test_a_picture_that_a_camera_has_turned_is_the_image_of_the_upright_one(tmp_path):
    model, pixels = opened(), np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    upright = Image.fromarray(pixels)
    upright.save(tmp_path / "upright.png")
    turned, note = upright.transpose(Image.Transpose.ROTATE_90), Image.Exif()
    note[0x0112] = 6  # to be turned by 90 degrees clockwise
    turned.save(tmp_path / "turned.png", exif=note)
    assert torch.equal(read_image(model, tmp_path / "turned.png"), read_image(model, tmp_path / "upright.png"))
