"""CUHK03 under the new protocol (CUHK03-NP): ``<person>_c<camera>_*.png`` in three folders, as in Market-1501."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from lookalike.workflow.data.junk import is_image
from lookalike.workflow.data.readers.annotations import base_folder
from lookalike.workflow.settings.datasets import Dataset

FOLDERS = {"train": "bounding_box_train", "query": "query", "gallery": "bounding_box_test"}
_NAME = re.compile(r"(-?\d+)_c(\d+)")


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per picture, with ``camera``; at evaluation, pictures of the query's person and camera are to be ignored.

    Person -1 stands for boxes that show nobody in Market-1501's naming; these pictures are left out.

    Args:
        specification: ``subset`` is ``detected`` or ``labeled`` where the root holds both.
        root: holds the three folders, or ``<subset>/`` or ``cuhk03-np/<subset>/`` with them.

    Raises:
        ValueError: if a folder is missing, or a file's name does not say person and camera.
    """
    subset = specification.subset or "."
    base = base_folder(root, (f"cuhk03-np/{subset}", f"CUHK03-NP/{subset}", subset, "."), FOLDERS["train"])
    rows = []
    for role, name in FOLDERS.items():
        if not (base / name).is_dir():
            raise ValueError(f"{base / name} does not exist")
        for file in sorted(file for file in (base / name).iterdir() if is_image(file.name)):
            match = _NAME.match(file.name)
            if match is None:
                raise ValueError(f"{file} does not begin with <person>_c<camera>")
            rows.append((file.relative_to(root).as_posix(), int(match[1]), role, int(match[2])))
    frame = pd.DataFrame(rows, columns=["path", "label", "role", "camera"]).astype(
        {"label": "int64", "camera": "int64"}
    )
    frame["class_name"] = "person " + frame["label"].astype(str)
    return frame[frame["label"] != -1]
