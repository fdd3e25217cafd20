"""Tables of pictures, labels and roles, read from the files of a data set.

Sources of the counts: the owners' split files, see ``params/datasets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.checks import require_known
from lookalike.data.checks import check_counts, check_files, check_paths, check_rows_are_unique
from lookalike.data.class_names import told
from lookalike.data.hierarchy import coarse_labels, hierarchy_path, read_hierarchy
from lookalike.data.readers import KEYPOINT_READERS, READERS
from lookalike.data.roles import NO_LABEL, UNLABELLED, check_roles
from lookalike.settings.datasets import Dataset
from lookalike.settings.files import dataset_names, read

Specification = Mapping[str, Any]
COLUMNS = (
    *("path", "label", "role", "split", "coarse_", "fold"),
    *("box_x", "box_y", "box_width", "box_height", "mask", "camera"),
)


def load_specification(dataset: str) -> dict[str, Any]:
    """Content of ``params/datasets/<dataset>.yaml``.

    Raises:
        ValueError: if the name is unknown (the message lists the known ones) or the file breaks its schema.
    """
    require_known("data set", dataset, dataset_names())
    return read(f"params/datasets/{dataset}.yaml", Dataset).dump()


def read_split(dataset: str, root: Path) -> pd.DataFrame:
    """Pictures, labels and roles of a data set on disk. Pictures are not opened.

    Args:
        dataset: name of a file in ``params/datasets``.
        root: the folder that holds the archive's own top folder.

    Returns:
        As ``read_layout``.

    Raises:
        ValueError: if the name is unknown, and as ``read_layout``.
    """
    return read_layout(load_specification(dataset), root)


def read_layout(specification: Specification, root: Path) -> pd.DataFrame:
    """As ``read_split``, for a data set that a specification describes.

    Args:
        specification: ``layout``, and where they apply ``title``, ``classes``, ``counts``, ``hierarchy``,
            ``unlabelled``, ``ignore`` and ``self_match``, as in ``workflow/schemas/dataset.schema.yaml``.
        root: the folder that holds the layout's own top folder.

    Returns:
        One row per picture, in the order of the layout's list: ``path`` (relative to ``root``, with ``/``), ``label``
        (int64), ``role`` (``train``, ``test``, ``query`` or ``gallery``; of the folders that the specification calls
        so ``unlabelled``, with -1 for every label), and where the set has them ``coarse_<level>``
        (int64), ``box_x``, ``box_y``, ``box_width``, ``box_height`` (pixels of the original picture), ``mask`` (path),
        ``camera``, and ``split`` (iNaturalist: ``authors`` or ``own``). PASCAL-5i has one row per picture and class,
        and ``fold``. ``attrs`` holds ``title``, ``classes`` (by role how many and the first of them, in words) and what
        the layout says of itself, such as ``packaging`` (Cars) and ``split`` (iNaturalist, with the seed).

    Raises:
        ValueError: if the layout is unknown, a file is missing or broken, a class is empty, a listed picture does not
            exist, a count differs, or ``levels`` names labels that the set does not have; the message names the file,
            or data set, role, expected and found.
    """
    root = Path(root)
    if "one_of" in specification:
        return _first_variant(specification, root)
    frame = _read(specification, root)
    classes = frame[frame["role"] != UNLABELLED].groupby("role")["class_name"].unique()
    attributes = {**frame.attrs, "classes": [told(str(role), names) for role, names in classes.items()]}
    if (hierarchy := hierarchy_path(specification, root)) is not None:
        labelled = frame[frame["role"] != UNLABELLED]
        coarse = coarse_labels(labelled, read_hierarchy(hierarchy))
        frame = frame.join(coarse.reindex(frame.index, fill_value=NO_LABEL))
    _check_levels(specification, frame)
    ordered = [column for start in COLUMNS for column in frame.columns if column.startswith(start)]
    frame = frame[ordered].reset_index(drop=True)
    frame.attrs = {"title": _title(specification), **attributes}
    return frame


def read_keypoints(dataset: str, root: Path) -> pd.DataFrame:
    """Part locations of the pictures of a split.

    Returns:
        One row per picture and part: ``path``, ``part`` (name), ``x`` and ``y`` (pixels of the original picture, 0
        where the part is invisible) and ``visible`` (bool).

    Raises:
        ValueError: if the layout has no key points, and as ``read_split``.
    """
    return read_layout_keypoints(load_specification(dataset), root)


def read_layout_keypoints(specification: Specification, root: Path) -> pd.DataFrame:
    """As ``read_keypoints``, for a data set that a specification describes."""
    layout = specification["layout"]
    if layout not in KEYPOINT_READERS:
        raise ValueError(f"layout {layout!r} has no key points; layouts with key points: {', '.join(KEYPOINT_READERS)}")
    images = _read(specification, Path(root))["path"]
    keypoints = KEYPOINT_READERS[layout](Path(root))
    return keypoints[keypoints["path"].isin(images)].reset_index(drop=True)


def _check_levels(specification: Specification, frame: pd.DataFrame) -> None:
    """Refuse a level of the hierarchical metrics that names labels which the data set does not have."""
    coarse = [column.removeprefix("coarse_") for column in frame.columns if column.startswith("coarse_")]
    for name, level in specification.get("levels", {}).items():
        if level not in coarse:
            raise ValueError(
                f"{_title(specification)}, levels.{name}: it has no coarse labels {level!r}; "
                f"it has {', '.join(coarse) or 'none'}"
            )


def _first_variant(specification: Specification, root: Path) -> pd.DataFrame:
    problems = []
    for name in specification["one_of"]:
        try:
            return read_layout(load_specification(name), root)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError(f"{_title(specification)} is none of its variants: {'; '.join(problems)}")


def _read(specification: Specification, root: Path) -> pd.DataFrame:
    """The reader's rows, checked; with ``class_name``."""
    layout = specification.get("layout", "")
    require_known("layout", layout, READERS)
    if not root.is_dir():
        raise ValueError(f"{root} is no folder; it should hold {_title(specification)}")
    frame = READERS[layout](specification, root)
    if frame.empty:
        raise ValueError(f"{root} holds no images of {_title(specification)}")
    check_roles(frame, specification)
    check_rows_are_unique(frame, ["path", "label"])
    for column in {"path", "mask"} & set(frame.columns):
        check_paths(frame[column])
        check_files(frame[column].drop_duplicates(), root)
    if "counts" in specification:
        check_counts(frame, specification["counts"], _title(specification))
    return frame


def _title(specification: Specification) -> str:
    return str(specification.get("title", specification.get("layout")))
