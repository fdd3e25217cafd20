"""CUB-200-2011: lists of pictures, classes, boxes and parts in ``CUB_200_2011``, masks in ``segmentations``.

The pictures are those of ``images.txt``: repacked copies hold stray ``*_rgb.jpg`` files. ``train_test_split.txt`` is
the classification split over all classes and is not used.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pandas as pd

from lookalike.workflow.data.readers.annotations import look_up, read_rows
from lookalike.workflow.data.roles import assign_roles
from lookalike.workflow.settings.datasets import Dataset

TOP = "CUB_200_2011"
BOX = ("box_x", "box_y", "box_width", "box_height")


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per picture of ``images.txt`` whose class has a role; boxes and masks where they are on disk.

    Raises:
        ValueError: if a list is missing or broken, a picture has no class or box, or an annotation has no picture.
    """
    folder = root / TOP
    images = _images(folder)
    labels = _of_images(folder / "image_class_labels.txt", {"label": int}, images)
    frame = pd.DataFrame({"path": f"{TOP}/images/" + images, "label": labels["label"]})
    if (folder / "bounding_boxes.txt").is_file():
        frame = frame.join(_of_images(folder / "bounding_boxes.txt", dict.fromkeys(BOX, float), images))
    for masks in ("segmentations", f"{TOP}/segmentations"):
        if (root / masks).is_dir():
            frame["mask"] = images.map(lambda path, masks=masks: f"{masks}/{PurePosixPath(path).with_suffix('.png')}")
    return assign_roles(frame, specification.classes_by_role, _class_names(folder))


def read_keypoints(root: Path) -> pd.DataFrame:
    """One row per picture and part of ``parts/part_locs.txt``: ``path, part, x, y, visible``.

    Raises:
        ValueError: if a list is missing or broken, or a row names an unknown picture or part.
    """
    folder = root / TOP
    images = _images(folder)
    names = read_rows(folder / "parts" / "parts.txt", {"part": int, "name": str}).set_index("part")["name"]
    path = folder / "parts" / "part_locs.txt"
    rows = read_rows(path, {"image": int, "part": int, "x": float, "y": float, "visible": int})
    if rows.duplicated(["image", "part"]).any() or len(rows) != len(images) * len(names):
        raise ValueError(
            f"{path} must hold one row for each of {len(images)} images and {len(names)} parts, it has {len(rows)} rows"
        )
    return pd.DataFrame(
        {
            "path": f"{TOP}/images/" + look_up(rows["image"], images, "image", path),
            "part": look_up(rows["part"], names, "part", path),
            "x": rows["x"],
            "y": rows["y"],
            "visible": rows["visible"].astype(bool),
        }
    )


def _images(folder: Path) -> pd.Series:
    """Path below ``images/`` by picture id."""
    path = folder / "images.txt"
    images = read_rows(path, {"image": int, "path": str}).set_index("image")["path"]
    twice = images[images.index.duplicated() | images.duplicated()]
    if len(twice):
        raise ValueError(f"{path}: {twice.iloc[0]} or its id {twice.index[0]} stands twice")
    return images


def _of_images(path: Path, columns: dict[str, type], images: pd.Series) -> pd.DataFrame:
    """The rows of an annotation file in the order of ``images``, exactly one for each."""
    rows = read_rows(path, {"image": int, **columns}).set_index("image")
    stray = rows.index.difference(images.index)
    if len(stray):
        raise ValueError(f"{path}: image {stray[0]} is annotated, but not listed in images.txt")
    order = look_up(images.index.to_series(), pd.Series(range(len(rows)), index=rows.index), "image", path)
    return rows.iloc[order].set_axis(images.index)


def _class_names(folder: Path) -> dict[int, str]:
    """Class id to name, without the number that the folder's name begins with."""
    classes = read_rows(folder / "classes.txt", {"label": int, "name": str})
    return dict(zip(classes["label"], classes["name"].str.replace(r"^\d+\.", "", regex=True), strict=True))
