"""A folder per class: the layout of one's own data.

Either one tree of class folders, split by class, or ``train/`` and ``test/`` (or ``train/``, ``query/`` and
``gallery/``) with class folders inside. Folders of these names count as roles only if no other folder stands beside
them: ``train`` may be a class of vehicles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.data.junk import is_image, is_junk
from lookalike.data.roles import ROLES, assign_roles


def read(specification: Mapping[str, Any], root: Path) -> pd.DataFrame:
    """One row per image file. Labels count from 1 in the sorted order of the class names.

    Folders that hold nothing but one folder are passed through, as an archive's own top folder.

    Raises:
        ValueError: if a class is empty, images lie outside of or too deep inside the class folders, or ``classes`` is
            given although the folders' names say the roles.
    """
    top = root
    while len(folders(top)) == 1 and not _images(top):
        top = folders(top)[0]
    parts = folders(top)
    by_role = {part.name for part in parts} in ROLES
    if by_role and "classes" in specification:
        raise ValueError(f"{top} holds a folder for each role, so the split cannot be chosen by `classes`")
    trees = parts if by_role else [top]
    rows = pd.concat([_class_tree(tree) for tree in trees], ignore_index=True)
    names = {label: str(name) for label, name in enumerate(sorted(rows["class_name"].unique()), start=1)}
    frame = pd.DataFrame(
        {
            "path": rows["file"].map(lambda file: file.relative_to(root).as_posix()),
            "label": rows["class_name"].map({name: label for label, name in names.items()}).astype("int64"),
        }
    )
    if by_role:
        return frame.assign(role=rows["tree"], class_name=rows["class_name"])
    return assign_roles(frame, specification.get("classes"), names)


def folders(folder: Path) -> list[Path]:
    """Visible sub-folders, sorted by name."""
    inside = (entry for entry in folder.iterdir() if not is_junk(entry.name) and not entry.name.startswith("."))
    return sorted(entry for entry in inside if entry.is_dir())


def _class_tree(tree: Path) -> pd.DataFrame:
    """``file``, ``class_name`` and ``tree`` of the images in the folders of one tree."""
    if _images(tree):
        raise ValueError(f"{_images(tree)[0]} lies outside of the class folders")
    rows = []
    for folder in folders(tree):
        images = _images(folder)
        if not images:
            raise ValueError(f"class folder {folder} holds no image")
        deeper = [inner for inner in folders(folder) if _images(inner)]
        if deeper:
            raise ValueError(f"{deeper[0]} lies inside of a class folder; images belong directly into it")
        rows += [(image, folder.name, tree.name) for image in images]
    if not rows:
        raise ValueError(f"{tree} holds no class folder")
    return pd.DataFrame(rows, columns=["file", "class_name", "tree"])


def _images(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if is_image(entry.name) and entry.is_file())
