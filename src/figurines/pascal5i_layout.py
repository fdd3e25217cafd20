"""PASCAL-5i as it lies on disk: VOC 2012 with palette masks, SBD with MATLAB masks, lists that overlap as theirs do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from figurines.collection import Collection
from figurines.layouts import save, write_lines, write_mat, write_traits
from figurines.scenes import Labels, Scene

VOC, SBD = Path("VOCdevkit/VOC2012"), Path("benchmark_RELEASE/dataset")
VOID = 255
VAL, TRAIN = range(10), range(10, 12)  # numbers of a class's pictures in VOC's lists
EXTRA = range(9, 14)  # in SBD's lists: one is in VOC's val list, two are in its train list, two are new


def write_pascal5i(root: Path, collection: Collection) -> None:
    """``VOCdevkit/VOC2012``, where void runs along all edges, and ``benchmark_RELEASE/dataset``, which has no void.

    SBD lists even numbers to train and odd ones to validate.

    Raises:
        ValueError: if the pictures are no scenes.
    """
    voc_val: list[str] = []
    voc_train: list[str] = []
    sbd_val: list[str] = []
    sbd_train: list[str] = []
    for index in range(len(collection.species)):
        for number, picture in collection.pictures(index):
            if not isinstance(picture, Scene):
                raise ValueError(f"a {type(picture).__name__} does not tell the class of each pixel, a Scene does")
            stem = f"2012_{index + 1:02d}{number:04d}"
            if number in (*VAL, *TRAIN):
                save(picture.image, root / VOC / "JPEGImages" / f"{stem}.jpg")
                mask = np.where(picture.edges, np.uint8(VOID), picture.classes)
                save(_with_palette(mask), root / VOC / "SegmentationClass" / f"{stem}.png")
                (voc_val if number in VAL else voc_train).append(stem)
            if number in EXTRA:
                save(picture.image, root / SBD / "img" / f"{stem}.jpg")
                present = [label for label in np.unique(picture.classes) if label]
                truth = {"Segmentation": picture.classes, "CategoriesPresent": present}
                write_mat(root / SBD / "cls" / f"{stem}.mat", {"GTcls": truth})
                (sbd_val if number % 2 else sbd_train).append(stem)
    write_lines(root / VOC / "ImageSets" / "Segmentation" / "train.txt", voc_train)
    write_lines(root / VOC / "ImageSets" / "Segmentation" / "val.txt", voc_val)
    write_lines(root / SBD / "train.txt", sbd_train)
    write_lines(root / SBD / "val.txt", sbd_val)
    write_traits(root, dict(enumerate(collection.species, start=1)))


def _with_palette(labels: Labels) -> Image.Image:
    """A palette image whose numbers are the labels; the colours are VOC's, which spread a number's bits over them."""
    image = Image.fromarray(labels)
    image.putpalette([_channel(label >> shift) for label in range(256) for shift in range(3)])
    return image


def _channel(bits: int) -> int:
    """Every third bit, the lowest of them on top."""
    return sum((bits >> 3 * nth & 1) << 7 - nth for nth in range(3))
