"""Cars196 in each of its packagings.

* ``combined``: ``car_ims/`` and ``cars_annos.mat``, what the papers used.
* ``train_test``: ``cars_train/``, ``cars_test/``, ``devkit/`` and ``cars_test_annos_withlabels.mat``. Both halves
  number their pictures from ``00001.jpg``, so that a picture is its folder and its name.
* ``class_folders``: repacked copies with ``train/<class>/`` and ``test/<class>/``, with or without lists of boxes.

The halves of the packagings are the classification split over all classes; roles go by class instead. A box is the
corner ``(x1, y1)`` as annotated and the differences to ``(x2, y2)``.

Eleven pairs of equal pictures stand under two classes, as nearly equal models. All take part, as in the papers; the log
of the split says so, and an overlay's pictures of this layout are refused or dropped by its key ``duplicates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.io import loadmat

from lookalike.workflow.data.hierarchy import hierarchy_path, matched, read_hierarchy
from lookalike.workflow.data.junk import is_image
from lookalike.workflow.data.readers.annotations import numbers, read_apart, read_comma_rows, required, text_of
from lookalike.workflow.data.roles import assign_roles
from lookalike.workflow.settings.datasets import Dataset

CORNERS = ("x1", "y1", "x2", "y2")
LABELLED = "cars_test_annos_withlabels.mat"


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per annotated picture whose class has a role; ``attrs["packaging"]`` says which packaging was found.

    Raises:
        ValueError: if no packaging is complete or a file of it is broken.
    """
    if (root / "cars_annos.mat").is_file():
        packaging, (rows, names) = "combined", _combined(root)
    elif (root / "devkit").is_dir():
        packaging, (rows, names) = "train_test", _train_test(root)
    else:
        packaging, (rows, names) = "class_folders", _class_folders(specification, root)
    frame = assign_roles(_with_boxes(rows), specification.classes_by_role, names)
    frame.attrs["packaging"] = packaging
    return frame


def _combined(root: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    path = root / "cars_annos.mat"
    content = _matlab(path)
    return _annotations(content, path, "relative_im_path"), _names(content, path)


def _train_test(root: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    devkit = root / "devkit"
    labelled = next((path for path in (root / LABELLED, devkit / LABELLED) if path.is_file()), None)
    if labelled is None:
        raise ValueError(f"{root / LABELLED} does not exist; the devkit's own cars_test_annos.mat has no labels")
    halves = []
    for half, path in (("cars_train", devkit / "cars_train_annos.mat"), ("cars_test", labelled)):
        rows = _annotations(_matlab(path), path, "fname")
        nested = f"{half}/{half}" if (root / half / half).is_dir() else half  # as Kaggle's copy unpacks
        halves.append(rows.assign(path=f"{nested}/" + rows["path"]))
    meta = devkit / "cars_meta.mat"
    return pd.concat(halves, ignore_index=True), _names(_matlab(meta), meta)


def _class_folders(specification: Dataset, root: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    top = next(
        (root / name for name in ("car_data/car_data", "car_data", ".") if (root / name / "train").is_dir()), None
    )
    if top is None:
        raise ValueError(f"{root} holds none of cars_annos.mat, devkit/ and train/; its own folders belong below it")
    names = _listed_names(specification, root, top)
    labels = {name: label for label, name in names.items()}
    rows = []
    for half in ("train", "test"):
        files = sorted(file for file in (top / half).rglob("*") if is_image(file.name))
        boxes = _boxes(top / f"anno_{half}.csv")
        unpaired = set(boxes) ^ {file.name for file in files}
        if boxes and unpaired:
            raise ValueError(f"{top / half}: {min(unpaired)} is not both an image and a row of anno_{half}.csv")
        # A folder below a class folder is the second half of a name with a slash.
        written = [file.parent.relative_to(top / half).as_posix() for file in files]
        meant = matched(written, labels, loosened=True)
        for name, file in zip(written, files, strict=True):
            if name not in meant:
                raise ValueError(f"{file.parent} is no class of Cars196")
            label = labels[meant[name]]
            rows.append((file.relative_to(root).as_posix(), label, *boxes.get(file.name, (np.nan,) * 4)))
    return pd.DataFrame(rows, columns=["path", "label", *CORNERS]).dropna(axis="columns", how="all"), names


def _listed_names(specification: Dataset, root: Path, top: Path) -> dict[int, str]:
    """Class names from ``names.csv``, one per line in the order of the ids, or from the hierarchy."""
    if (top / "names.csv").is_file():
        lines = (line.strip().strip('"') for line in text_of(top / "names.csv").splitlines())
        return dict(enumerate((line for line in lines if line), start=1))
    path = hierarchy_path(specification, root)
    if path is None:
        raise ValueError(f"{top / 'names.csv'} does not exist and no hierarchy is named, so class ids are unknown")
    table = read_hierarchy(path)
    return dict(zip(table["class_id"], table["class_name"], strict=True))


def _boxes(path: Path) -> dict[str, tuple[float, ...]]:
    """Corners by file name from rows ``name, x1, y1, x2, y2, class`` without a header; empty without the file."""
    if not path.is_file():
        return {}
    table = read_comma_rows(path, {"path": str, **dict.fromkeys(CORNERS, float), "label": str})
    return dict(zip(table["path"], table[list(CORNERS)].itertuples(index=False, name=None), strict=True))


def _annotations(content: Mapping[str, Any], path: Path, path_field: str) -> pd.DataFrame:
    """``path``, ``label`` and corners from the struct array ``annotations``."""
    annotations = np.atleast_1d(content.get("annotations", np.array([])))
    fields = (path_field, *(f"bbox_{corner}" for corner in CORNERS), "class")
    absent = [field for field in fields if field not in (annotations.dtype.names or ())]
    if absent:
        raise ValueError(f"{path} holds no annotations with the field {absent[0]!r}")
    rows = pd.DataFrame({field: list(annotations[field]) for field in fields}, dtype=object).set_axis(
        ["path", *CORNERS, "label"], axis="columns"
    )
    # The integers come as uint8 and uint16, in which differences of corners would wrap around.
    columns = {name: numbers(rows[name], int if name == "label" else float, path) for name in (*CORNERS, "label")}
    return pd.DataFrame({"path": rows["path"].astype(str), **columns})


def _names(content: Mapping[str, Any], path: Path) -> dict[int, str]:
    if "class_names" not in content:
        raise ValueError(f"{path} holds no class_names")
    return {label: str(name).strip() for label, name in enumerate(np.atleast_1d(content["class_names"]), start=1)}


def _matlab(path: Path) -> dict[str, Any]:
    return read_apart(_loaded, [required(path)])[0]


def _loaded(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = loadmat(path, squeeze_me=True)
    except Exception as error:  # scipy has no error of its own for a file that is none
        raise ValueError(f"{path} is no readable MATLAB file: {error}") from None
    return content


def _with_boxes(rows: pd.DataFrame) -> pd.DataFrame:
    """Corners as a corner and a size."""
    if not set(CORNERS) <= set(rows.columns):
        return rows[["path", "label"]]
    sides = {"box_width": rows["x2"] - rows["x1"], "box_height": rows["y2"] - rows["y1"]}
    return rows[["path", "label"]].assign(box_x=rows["x1"], box_y=rows["y1"], **sides)
