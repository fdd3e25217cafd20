"""Tables of pictures, labels and roles, read from the files of a data set.

Sources of the counts: the owners' split files, see ``params/datasets``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from lookalike.base.checks import require_known
from lookalike.workflow.data.class_names import told
from lookalike.workflow.data.hierarchy import coarse_labels, hierarchy_path, read_hierarchy
from lookalike.workflow.data.readers import KEYPOINT_READERS, READERS
from lookalike.workflow.data.roles import NO_LABEL, UNLABELLED, check_roles
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import dataset_names, read

COLUMNS = (
    *("path", "label", "role", "split", "coarse_", "fold"),
    *("box_x", "box_y", "box_width", "box_height", "mask", "camera"),
)
HELD_OUT_SHARE = 0.2  # of the training classes
LEAST_CLASSES = 4  # that are needed to hold some out


def load_specification(dataset: str) -> Dataset:
    """Content of ``params/datasets/<dataset>.yaml``.

    Raises:
        ValueError: if the name is unknown (the message lists the known ones) or the file breaks its schema.
    """
    require_known("data set", dataset, dataset_names())
    return read(f"params/datasets/{dataset}.yaml", Dataset)


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


def read_layout(specification: Dataset, root: Path) -> pd.DataFrame:
    """As ``read_split``, for a data set that a specification describes.

    Args:
        specification: ``layout``, and where they apply ``title``, ``classes``, ``counts``, ``hierarchy``,
            ``unlabelled``, ``ignore`` and ``self_match``, as in `lookalike.workflow.settings.datasets.Dataset`.
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
    if specification.one_of:
        return _first_variant(specification, root)
    frame = _read(specification, root)
    classes = frame[frame["role"] != UNLABELLED].groupby("role")["class_name"].unique()
    attributes = {**frame.attrs, "classes": [told(str(role), names) for role, names in classes.items()]}
    if (hierarchy := hierarchy_path(specification, root)) is not None:
        labelled = frame[frame["role"] != UNLABELLED]
        coarse = coarse_labels(labelled, read_hierarchy(hierarchy), loosened=specification.layout == "cars")
        frame = frame.join(coarse.reindex(frame.index, fill_value=NO_LABEL))
    _check_levels(specification, frame)
    ordered = [column for start in COLUMNS for column in frame.columns if column.startswith(start)]
    frame = frame[ordered].reset_index(drop=True)
    frame.attrs = {"title": specification.title, **attributes}
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


def read_layout_keypoints(specification: Dataset, root: Path) -> pd.DataFrame:
    """As ``read_keypoints``, for a data set that a specification describes."""
    layout = specification.layout
    if layout not in KEYPOINT_READERS:
        raise ValueError(f"layout {layout!r} has no key points; layouts with key points: {', '.join(KEYPOINT_READERS)}")
    images = _read(specification, Path(root))["path"]
    keypoints = KEYPOINT_READERS[layout](Path(root))
    return keypoints[keypoints["path"].isin(images)].reset_index(drop=True)


def held_out(frame: pd.DataFrame, *, seed: int | None, source: str) -> pd.DataFrame:
    """The training pictures of a split as a split of their own: most classes to train, the others to test.

    Of each super-class as many are held out: a batch of `lookalike.sampling.HierarchicalSampler` wants many of one.

    Args:
        frame: rows of the split with the columns ``role`` and ``label``, of super-classes with ``coarse_super``.
        seed: seed of the choice of classes; ``None`` for the last ones, the same in every comparison.
        source: file of the split, for messages.

    Raises:
        ValueError: if there are fewer than `LEAST_CLASSES` training classes, of which at least two are held out.
    """
    training = frame[frame["role"] == "train"]
    classes = np.sort(training["label"].unique())
    if len(classes) < LEAST_CLASSES:
        least = f"to hold some out it takes at least {LEAST_CLASSES}"
        raise ValueError(f"{source} has {len(classes)} training classes; {least}")
    drawn = classes[::-1] if seed is None else np.random.default_rng(seed).permutation(classes)
    if "coarse_super" in training:
        coarse = training.drop_duplicates("label").set_index("label")["coarse_super"].loc[drawn]
        drawn = drawn[np.argsort(coarse.groupby(coarse).cumcount(), kind="stable")]
    held = drawn[: held_out_classes(len(classes))]
    return training.assign(role=np.where(training["label"].isin(held), "test", "train"))


def second_half(frame: pd.DataFrame, *, source: str) -> pd.DataFrame:
    """A split with training and test classes in each other's place; other rows stay as they are.

    Args:
        frame: rows of the split with the columns ``role`` and ``label``.
        source: file of the split, for messages.

    Raises:
        ValueError: if queries and gallery are apart, or a class is on both sides.
    """
    labels = {str(role): set(rows["label"]) for role, rows in frame.groupby("role")}
    if apart := {"query", "gallery"} & labels.keys():
        raise ValueError(f"{source} has the role {min(apart)!r}; only training and test classes can change sides")
    if shared := labels.get("train", set()) & labels.get("test", set()):
        raise ValueError(f"{source}: class {min(shared)} both trains and tests, so the halves are not apart")
    return frame.assign(role=frame["role"].replace({"train": "test", "test": "train"}))


def held_out_classes(classes: int) -> int:
    """Number of classes held out of so many training classes."""
    return max(2, round(HELD_OUT_SHARE * classes))


def _check_levels(specification: Dataset, frame: pd.DataFrame) -> None:
    """Refuse a level of the hierarchical metrics that names labels which the data set does not have."""
    coarse = [column.removeprefix("coarse_") for column in frame.columns if column.startswith("coarse_")]
    for name, level in specification.levels.items():
        if level not in coarse:
            raise ValueError(
                f"{specification.title}, levels.{name}: it has no coarse labels {level!r}; "
                f"it has {', '.join(coarse) or 'none'}"
            )


def _first_variant(specification: Dataset, root: Path) -> pd.DataFrame:
    problems = []
    for name in specification.one_of:
        try:
            return read_layout(load_specification(name), root)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError(f"{specification.title} is none of its variants: {'; '.join(problems)}")


def _read(specification: Dataset, root: Path) -> pd.DataFrame:
    """The reader's rows, checked; with ``class_name``."""
    layout = specification.layout
    require_known("layout", layout, READERS)
    if not root.is_dir():
        raise ValueError(f"{root} is no folder; it should hold {specification.title}")
    frame = READERS[layout](specification, root)
    if frame.empty:
        raise ValueError(f"{root} holds no images of {specification.title}")
    check_roles(frame, specification)
    _check_rows_are_unique(frame, ["path", "label"])
    for column in {"path", "mask"} & set(frame.columns):
        _check_paths(frame[column])
        _check_files(frame[column].drop_duplicates(), root)
    if specification.counts:
        _check_counts(frame, specification.counts.dump(), specification.title)
    return frame


def _check_paths(paths: pd.Series) -> None:
    """Raise ``ValueError`` naming the first path that is absolute or leads out of the data set's root."""
    odd = paths[paths.str.startswith("/") | paths.str.contains(r"(?:^|/)\.\.(?:/|$)|\\", regex=True)]
    if len(odd):
        raise ValueError(f"path {odd.iloc[0]!r} is not allowed: it must be relative, with /, and without ..")


def _check_rows_are_unique(frame: pd.DataFrame, columns: list[str]) -> None:
    """Raise ``ValueError`` naming the first path that is listed twice."""
    twice = frame.loc[frame.duplicated(columns), "path"]
    if len(twice):
        raise ValueError(f"{twice.iloc[0]} is listed twice")


def _check_files(paths: pd.Series, root: Path) -> None:
    """Raise ``ValueError`` naming the first listed file that does not exist, and how many there are of them.

    Folders are listed, which takes seconds where asking for each of 500,000 files takes minutes on a network disk.
    """
    folders = paths.map(lambda path: str(PurePosixPath(path).parent))
    present = {f"{folder}/{name}" for folder in folders.unique() for name in _files(root / folder)}
    absent = paths[~(folders + "/" + paths.map(lambda path: PurePosixPath(path).name)).isin(present)]
    if len(absent):
        raise ValueError(
            f"{root / absent.iloc[0]} does not exist ({len(absent)} of {len(paths)} listed files are missing)"
        )


def _check_counts(frame: pd.DataFrame, counts: Mapping[str, Mapping[str, int]], title: str) -> None:
    """Raise ``ValueError`` naming data set and role where classes or pictures differ from the expected numbers."""
    roles = frame.groupby("role")
    counted = pd.DataFrame({"classes": roles["label"].nunique(), "images": roles["path"].nunique()})
    for role, expected in counts.items():
        seen = {key: int(counted[key].get(role, 0)) for key in expected}
        if seen != dict(expected):
            raise ValueError(f"{title}, {role}: {_numbers(expected)} expected, {_numbers(seen)} found")
    unexpected = sorted(set(counted.index) - set(counts))
    if unexpected:
        raise ValueError(
            f"{title}: no images of role {unexpected[0]} expected, {counted['images'][unexpected[0]]} found"
        )


def _files(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file()]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):  # there is no such folder
            return []
        raise


def _numbers(values: Mapping[str, int]) -> str:
    return " and ".join(f"{value} {key}" for key, value in values.items())
