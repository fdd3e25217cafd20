"""What counts as a picture file by its name."""

import pytest
from PIL import Image

from lookalike.workflow.data.junk import UNREAD_SUFFIXES, image_suffixes, is_image


@pytest.mark.parametrize(
    "name",
    [
        *("a.jpg", "a.JPEG", "a.png", "a.bmp", "a.gif", "a.tif", "a.webp", "a.ppm"),
        *("a.avif", "a.jfif", "a.jpe", "a.jp2", "a.tga", "a.heic", "a.HEIF", "a.psd"),
        *("a.nef", "a.DNG", "a.jxl", "a.svg"),  # which are not read, but said
    ],
)
def test_pictures_are_known_by_name(name):
    assert is_image(name)


@pytest.mark.parametrize(
    "name", ["a.txt", "a.pdf", "a.eps", "a.mpg", "a.h5", "jpg", "a.jpg.part", "._a.jpg", "Thumbs.db"]
)
def test_other_files_films_and_documents_are_none(name):
    assert not is_image(name)


def test_every_kind_that_is_not_read_is_none_of_pillows():
    assert not {*Image.registered_extensions()} & UNREAD_SUFFIXES
    assert image_suffixes() > UNREAD_SUFFIXES
