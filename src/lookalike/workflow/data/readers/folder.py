"""A folder per class: the layout of one's own data.

Either one tree of class folders, split by class, or ``train/`` and ``test/`` (or ``train/``, ``query/`` and
``gallery/``) with class folders inside. Folders of these names count as roles only if no other folder stands beside
them: ``train`` may be a class of vehicles. Folders that `unlabelled` names hold pictures of no known class, at any
depth; what `ignore` matches is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from lookalike.base.text import counted
from lookalike.workflow.data.class_names import by_label, in_order, one_form, remarks_on
from lookalike.workflow.data.hierarchy import OWN
from lookalike.workflow.data.junk import is_image, is_junk
from lookalike.workflow.data.roles import NO_LABEL, ROLES, UNLABELLED, assign_roles
from lookalike.workflow.settings.datasets import Dataset


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per picture. Labels count from 1 in the order of the class names; unlabelled pictures have -1.

    Names are in NFC, without white space around them, and in the order of the numbers in them: 2 comes before 10.
    Folders that hold nothing but one folder are passed through, as an archive's own top folder. ``attrs["remarks"]``
    are sentences on names that look alike and on links, ``attrs["others"]`` the files that are no pictures by name.

    Raises:
        ValueError: if there is one class only, a class is empty, pictures lie outside of or too deep inside the class
            folders, ``classes`` is given although the folders' names say the roles or means two choices, an unlabelled
            folder does not exist or is empty, or a pattern to ignore matches nothing.
    """
    tree = _Tree(root, specification.ignore)
    top, apart = _top(tree, specification.unlabelled)
    frames = [] if top in apart else [_labelled(tree, top, apart, specification)]
    files: dict[str, Path] = {}  # by where links lead: a picture that is met twice would count twice
    again = [
        file
        for folder in apart
        for file in _unlabelled(tree, folder)
        if files.setdefault(os.path.realpath(file), file) != file
    ]
    if files:
        rows = {
            "path": [tree.name(file) for file in files.values()],
            "label": NO_LABEL,
            "role": UNLABELLED,
            "class_name": "",
        }
        frames.append(pd.DataFrame(rows))
    tree.refuse_idle_patterns()
    whole = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    remarks = frames[0].attrs.get("remarks", [])
    if again:
        met = f"{counted(len(again), 'unlabelled picture')} met again by a link and taken once"
        remarks = [*remarks, f"{met}; the first is {tree.name(again[0])}"]
    whole.attrs = {"remarks": remarks, "others": [tree.name(path) for path in sorted(tree.others)]}
    return whole


def folders(folder: Path) -> list[Path]:
    """Visible sub-folders, sorted by name."""
    inside = (entry for entry in folder.iterdir() if not is_junk(entry.name) and not entry.name.startswith("."))
    return sorted(entry for entry in inside if entry.is_dir())


class _Tree:
    """What is seen of the files below a root: neither junk, nor hidden, nor ignored.

    Attributes:
        others: files that are no pictures by their names.
    """

    def __init__(self, root: Path, patterns: Sequence[str]) -> None:
        self.root = root
        self.others: set[Path] = set()
        self._patterns = patterns
        self._met: set[str] = set()

    def name(self, path: Path) -> str:
        """The path relative to the root, with ``/``; one that is no UTF-8 is refused with a ``ValueError``."""
        name = path.relative_to(self.root).as_posix()
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{str(path)!a}: the name is no UTF-8, which lists are written in; rename it") from None
        return name

    def folders(self, folder: Path) -> list[Path]:
        """As the function of that name, without those that are ignored."""
        return [entry for entry in folders(folder) if not self._is_ignored(entry)]

    def images(self, folder: Path) -> list[Path]:
        """Pictures that lie directly in a folder, sorted by name; links that lead nowhere are among them."""
        entries = (entry for entry in sorted(folder.iterdir()) if not is_junk(entry.name) and not entry.is_dir())
        seen = [entry for entry in entries if not self._is_ignored(entry)]
        self.others |= {each for each in seen if not is_image(each.name) and each.name != OWN and each.name[0] != "."}
        return [entry for entry in seen if is_image(entry.name)]

    def below(self, folder: Path, apart: Sequence[Path] = (), above: frozenset[str] = frozenset()) -> Iterator[Path]:
        """Pictures of a folder and of those in it, at any depth, but for some folders and links back to one above."""
        if folder not in apart and (real := os.path.realpath(folder)) not in above:
            yield from self.images(folder)
            for inner in self.folders(folder):
                yield from self.below(inner, apart, above | {real})

    def refuse_idle_patterns(self) -> None:
        """Raise ``ValueError`` naming the first pattern that no file or folder was ignored by."""
        for pattern in self._patterns:
            if pattern not in self._met:
                raise ValueError(f"ignore: {pattern!r} matches no file and no folder below {self.root}")

    def _is_ignored(self, path: Path) -> bool:
        """A pattern with a slash is held against the path below the root, any other against the name alone."""
        name = self.name(path)
        met = {pattern for pattern in self._patterns if fnmatchcase(name if "/" in pattern else path.name, pattern)}
        self._met |= met
        return bool(met)


def _top(tree: _Tree, names: Sequence[str]) -> tuple[Path, list[Path]]:
    """The folder whose folders are classes or roles, and the unlabelled folders, which lie below it or its parents."""
    top, apart = tree.root, {name: tree.root / name for name in names if (tree.root / name).is_dir()}
    while (inside := [folder for folder in tree.folders(top) if folder not in apart.values()]) and not (
        len(inside) > 1 or tree.images(top) or (apart and inside[0].name in set().union(*ROLES))
    ):
        top = inside[0]
        apart |= {name: top / name for name in names if name not in apart and (top / name).is_dir()}
    for name in names:
        if name not in apart:
            raise ValueError(f"unlabelled: {tree.root / name} is no folder; it should hold pictures of no known class")
    return top, list(apart.values())


def _labelled(tree: _Tree, top: Path, apart: Sequence[Path], specification: Dataset) -> pd.DataFrame:
    """Rows of the pictures in class folders."""
    parts = [folder for folder in tree.folders(top) if folder not in apart]
    if not parts and apart and not tree.images(top):
        return pd.DataFrame()
    if not parts and tree.images(top):
        what = "holds pictures and no class folders" if top == tree.root else f"is the only class folder of {tree.root}"
        raise ValueError(f"{top} {what}; it takes a folder for each class, two to train on and two to test on at least")
    folder_names = {part.name for part in parts}
    by_role = folder_names in ROLES or bool(apart and "query" in folder_names <= {"train", "query"})
    if by_role and specification.classes:
        raise ValueError(f"{top} holds a folder for each role, so the split cannot be chosen by `classes`")
    rows = pd.concat([_class_tree(tree, part, apart) for part in (parts if by_role else [top])], ignore_index=True)
    written = rows["file"].map(lambda file: str(file.parent.name))
    rows["class_name"] = written.map(one_form)
    names = dict(enumerate(in_order(rows["class_name"].unique()), start=1))
    label_of = {name: label for label, name in names.items()}
    frame = pd.DataFrame(
        {"path": rows["file"].map(tree.name), "label": rows["class_name"].map(label_of).astype("int64")}
    )
    if by_role:
        frame = frame.assign(role=rows["tree"], class_name=rows["class_name"])
    else:
        classes = specification.classes_by_role
        frame = assign_roles(frame, None if classes is None else by_label(classes, names), names)
    frame.attrs["remarks"] = remarks_on(written.unique())
    return frame


def _class_tree(tree: _Tree, top: Path, apart: Sequence[Path]) -> pd.DataFrame:
    """``file`` and ``tree`` of the pictures in the class folders of one place."""
    if stray := tree.images(top):
        raise ValueError(f"{stray[0]} lies outside of the class folders")
    rows = []
    for folder in tree.folders(top):
        if folder in apart:
            continue
        images = tree.images(folder)
        if not images:
            raise ValueError(f"class folder {folder} holds no image")
        for inner in tree.folders(folder):
            if (deeper := next(tree.below(inner, apart), None)) is not None:
                raise ValueError(f"{deeper.parent} lies inside of a class folder; images belong directly into it")
        rows += [(image, top.name) for image in images]
    if not rows:
        raise ValueError(f"{top} holds no class folder")
    return pd.DataFrame(rows, columns=["file", "tree"])


def _unlabelled(tree: _Tree, folder: Path) -> list[Path]:
    """Pictures below an unlabelled folder, at any depth.

    Raises:
        ValueError: if there is none.
    """
    files = list(tree.below(folder))
    if not files:
        raise ValueError(f"unlabelled: {folder} holds no image")
    return files
