"""In-Shop Clothes Retrieval (DeepFashion): ``Eval/list_eval_partition.txt``, ``Img/img/`` and ``Anno/``.

Query and gallery share their items but no picture, so no picture is its own match.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lookalike.workflow.data.readers.annotations import base_folder, look_up, numbers, read_rows
from lookalike.workflow.settings.datasets import Dataset

TOPS = (".", "In-shop Clothes Retrieval Benchmark")
ROLES = ("train", "query", "gallery")


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per listed picture; the label is the item's number, ``coarse_category`` the folders ``MEN/Denim``.

    Raises:
        ValueError: if a list is missing, broken or cut short, or an annotation has no picture.
    """
    base = base_folder(root, TOPS, "Eval/list_eval_partition.txt")
    path = base / "Eval" / "list_eval_partition.txt"
    rows = _counted_rows(path, {"image": str, "item": str, "role": str})
    strange = rows[~rows["role"].isin(ROLES)]
    if len(strange):
        raise ValueError(f"{path}: evaluation_status {strange['role'].iloc[0]!r} is none of {', '.join(ROLES)}")
    pictures = base_folder(base, ("Img", "."), "img").relative_to(root).as_posix()
    prefix = "" if pictures == "." else f"{pictures}/"
    category = rows["image"].str.split("/").str[1:3].str.join("/")
    frame = pd.DataFrame(
        {
            "path": prefix + rows["image"],
            "label": numbers(rows["item"].str.removeprefix("id_"), int, path),
            "role": rows["role"],
            "class_name": category + " " + rows["item"],
            "coarse_category": pd.Categorical(category).codes.astype("int64"),
        }
    )
    boxes = base / "Anno" / "list_bbox_inshop.txt"
    return frame.join(_boxes(boxes, rows["image"])) if boxes.is_file() else frame


def _boxes(path: Path, images: pd.Series) -> pd.DataFrame:
    """Box of each picture, from its corners."""
    corners = dict.fromkeys(("x1", "y1", "x2", "y2"), float)
    rows = _counted_rows(path, {"image": str, "clothes": int, "pose": int, **corners}).set_index("image")
    stray = rows.index.difference(pd.Index(images))
    if len(stray):
        raise ValueError(f"{path}: {stray[0]} is annotated, but not in the partition")
    sides = {"box_width": rows["x2"] - rows["x1"], "box_height": rows["y2"] - rows["y1"]}
    boxes = rows.assign(box_x=rows["x1"], box_y=rows["y1"], **sides)
    order = look_up(images, pd.Series(range(len(rows)), index=rows.index), "image", path)
    return boxes.iloc[order].set_axis(images.index)[["box_x", "box_y", "box_width", "box_height"]]


def _counted_rows(path: Path, columns: Mapping[str, type]) -> pd.DataFrame:
    """Rows below a line with their number and a line with the fields' names."""
    stated = read_rows(path, {"number": str})["number"].iloc[:1].tolist()
    rows = read_rows(path, columns, skip=2)
    if stated != [str(len(rows))]:
        raise ValueError(f"{path} states {' '.join(stated) or 'no number of'} rows and holds {len(rows)}")
    return rows
