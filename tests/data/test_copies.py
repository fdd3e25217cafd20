"""Of equal pictures of a class one stays, and pictures that are saved or resized anew are found."""

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageFilter

from lookalike.data.copies import BITS, NEAR, equal_in_class, equal_in_other_classes, near_copies, perceptual_hash


def photograph(seed, size=(96, 72)):
    """Soft spots of colour: as in photographs, most of it is in low frequencies."""
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))


def saved(picture, kind, **options):
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return Image.open(stream).convert("RGB")


def hashes(pictures):
    return np.frombuffer(b"".join(map(perceptual_hash, pictures)), dtype=np.uint8).reshape(-1, BITS // 8)


def rows(*listed):
    return pd.DataFrame(listed, columns=["path", "label", "role", "sha256"])


def test_of_equal_pictures_of_a_class_the_first_stays():
    frame = rows(("b", 1, "train", "x"), ("a", 1, "train", "x"), ("c", 1, "train", "y"), ("d", 2, "train", "x"))
    assert equal_in_class(frame) == {"a": "copy of b"}


@pytest.mark.parametrize(
    ("first", "second"), [("gallery", "query"), ("train", "test"), ("train", "query"), ("train", "gallery")]
)
def test_of_equal_pictures_in_two_roles_the_one_that_is_searched_for_stays(first, second):
    assert equal_in_class(rows(("a", 1, first, "x"), ("b", 1, second, "x"))) == {"a": "copy of b"}
    assert equal_in_class(rows(("a", 1, second, "x"), ("b", 1, first, "x"))) == {"b": "copy of a"}


def test_a_picture_with_two_labels_is_no_copy_of_itself_and_unlabelled_ones_are_left_alone():
    assert not equal_in_class(rows(("a", 1, "test", "x"), ("a", 2, "test", "x"), ("b", 1, "left_out", "x")))
    assert not equal_in_class(rows(("a", -1, "unlabelled", "x"), ("b", -1, "unlabelled", "x")))


def test_equal_pictures_in_two_classes_are_found_among_those_that_take_part():
    frame = rows(("a", 1, "train", "x"), ("b", 2, "test", "x"), ("c", 3, "left_out", "x"), ("d", 3, "test", "y"))
    assert equal_in_other_classes(frame) == {"a": "same bytes as b", "b": "same bytes as a"}


@pytest.mark.parametrize(
    "copied",
    [
        lambda picture: saved(picture, "JPEG", quality=50),
        lambda picture: saved(picture, "WEBP", quality=50),
        lambda picture: picture.resize((48, 36), Image.Resampling.LANCZOS),
        lambda picture: picture.resize((192, 144), Image.Resampling.BICUBIC),
        lambda picture: picture.point(lambda value: value * 0.9 + 10),
    ],
)
def test_a_copy_saved_resized_or_made_lighter_is_near_its_original_and_no_other_picture_is(copied):
    originals = [photograph(seed) for seed in range(40)]
    found = near_copies(hashes([*originals, copied(originals[7])]))
    assert found.tolist() == [*range(40), 7]


def test_near_means_at_most_so_many_bits():
    bits = np.random.default_rng(0).integers(0, 2, (2, BITS), dtype=np.uint8)
    third, fourth = bits[0].copy(), bits[0].copy()
    third[:NEAR] ^= 1
    fourth[: NEAR + 1] ^= 1
    assert near_copies(np.packbits([*bits, third], axis=1)).tolist() == [0, 1, 0]
    assert near_copies(np.packbits([*bits, fourth], axis=1)).tolist() == [0, 1, 2]
    assert near_copies(np.packbits([bits[1], bits[0], bits[1], bits[0]], axis=1)).tolist() == [0, 1, 0, 1]


def test_a_picture_of_one_colour_has_no_hash():
    assert perceptual_hash(Image.new("RGB", (40, 40), "red")) is None
    assert len(perceptual_hash(photograph(0))) == BITS // 8
