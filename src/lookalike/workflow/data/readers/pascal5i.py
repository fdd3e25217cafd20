"""PASCAL-5i: VOC 2012 (``VOCdevkit/VOC2012``) and SBD (``benchmark_RELEASE/dataset``), cut into folds of five classes.

One row per picture and class that its mask shows. Fold ``i`` trains on the rows of role ``train`` with another fold and
tests on the rows of role ``test`` with fold ``i``. Training pictures are those of VOC's train list and of SBD that are
not in VOC's val list; where both have a mask, VOC's is taken. VOC's masks are palette images to be opened without
conversion; SBD's are MATLAB files (``GTcls.Segmentation``). A picture whose mask shows no class has no row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from lookalike.workflow.data.readers.annotations import read_apart, read_rows, required
from lookalike.workflow.settings.datasets import Dataset

VOC, SBD = "VOCdevkit/VOC2012", "benchmark_RELEASE/dataset"
VOID = 255
CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle"),
    *("bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person"),
    *("pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per picture and class, with ``mask`` and ``fold``. Masks are opened, for the classes they show.

    Raises:
        ValueError: if a list is missing or broken, or a mask is missing, unreadable, or shows an unknown class.
    """
    train, val = (_listed(root / VOC / "ImageSets" / "Segmentation" / f"{name}.txt") for name in ("train", "val"))
    extra = set(_listed(root / SBD / "train.txt")) | set(_listed(root / SBD / "val.txt"))
    voc = [(f"{VOC}/JPEGImages/{stem}.jpg", f"{VOC}/SegmentationClass/{stem}.png") for stem in (*train, *val)]
    sbd = [(f"{SBD}/img/{stem}.jpg", f"{SBD}/cls/{stem}.mat") for stem in sorted(extra - set(train) - set(val))]
    pairs, roles = (*voc, *sbd), ["train"] * len(train) + ["test"] * len(val) + ["train"] * len(sbd)
    shown = read_apart(mask_classes, [required(root / mask) for _, mask in pairs])
    rows = [
        (path, label, role, mask)
        for (path, mask), role, labels in zip(pairs, roles, shown, strict=True)
        for label in labels
    ]
    frame = pd.DataFrame(rows, columns=["path", "label", "role", "mask"]).astype({"label": "int64"})
    return frame.assign(
        fold=(frame["label"] - 1) // 5, class_name=frame["label"].map(dict(enumerate(CLASSES, start=1)))
    )


def read_mask(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Class of each pixel ``(H, W)``: 0 for the background, 1 to 20, 255 for pixels that do not count.

    Raises:
        ValueError: if the file is no mask.
    """
    try:
        if path.suffix == ".mat":
            from scipy.io import loadmat  # half a second, of each command that reads a picture

            content = loadmat(path, struct_as_record=False)["GTcls"][0, 0].Segmentation
            return np.asarray(content, dtype=np.uint8)
        with Image.open(path) as image:
            if image.mode not in ("P", "L"):
                raise ValueError(f"mode {image.mode}, not the palette's numbers")
            return np.asarray(image, dtype=np.uint8)
    except Exception as error:  # neither scipy nor Pillow has one error for a broken file
        raise ValueError(f"{path} is no mask: {error}") from None


def mask_classes(path: Path) -> list[int]:
    """The classes that a mask shows, sorted, without background and void.

    Raises:
        ValueError: as ``read_mask``, and if there are others than 1 to 20.
    """
    labels = [int(label) for label in np.unique(read_mask(path)) if label not in (0, VOID)]
    if labels and labels[-1] > len(CLASSES):
        raise ValueError(f"{path} shows class {labels[-1]}; allowed are 0 to {len(CLASSES)} and {VOID}")
    return labels


def _listed(path: Path) -> list[str]:
    return read_rows(path, {"stem": str})["stem"].tolist()
