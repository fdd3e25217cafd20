"""What of a data set is on disk, what is missing and how to get it, and whether all of it is as it should be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lookalike.data.checksums import expected_digest, mismatch
from lookalike.data.download import candidates, find_on_disk
from lookalike.data.manifest import altered_files, read_manifest
from lookalike.data.splits import load_specification, read_layout

Specification = Mapping[str, Any]
# What is left to do: nothing; nothing for a person, since the first run that needs it gets it; or a person must act.
Readiness = Literal["ready", "comes by itself", "waits for you"]


@dataclass(frozen=True)
class ArchiveState:
    """One archive of a data set.

    Attributes:
        archive: the archive's part of the specification.
        path: file of the archive, ``None`` if it is not on disk.
        problem: what tells a file of its name from it, or how far its download is; else empty.
    """

    archive: Mapping[str, Any]
    path: Path | None
    problem: str


@dataclass(frozen=True)
class DatasetState:
    """One data set.

    Attributes:
        name: file of ``params/datasets``.
        specification: content of the data set's file.
        root: folder that the data set's files belong to.
        images: number of different pictures, 0 where they cannot be read.
        classes: number of classes.
        size: bytes below ``root``.
        problem: why ``root`` cannot be read, empty where it can.
        archives: one state per archive of the specification.
    """

    name: str
    specification: Specification
    root: Path
    images: int
    classes: int
    size: int
    problem: str
    archives: tuple[ArchiveState, ...]

    @property
    def licence(self) -> str:
        """In one line; that of the first variant where the data set is one of several."""
        variants = self.specification.get("one_of", ())
        return str((load_specification(variants[0]) if variants else self.specification).get("licence", "not stated"))

    @property
    def is_counted(self) -> bool:
        """Whether the numbers of classes and pictures are known, so that what can be read has them."""
        return "counts" in self.specification or "one_of" in self.specification

    @property
    def manual(self) -> str:
        """What a person can do, empty where there is nothing."""
        return str(self.specification.get("manual", ""))

    @property
    def readiness(self) -> Readiness:
        """What is left to do."""
        if not self.problem:
            return "ready"
        if "generator" in self.specification or any(self._can_be_had(each) for each in self._packagings()):
            return "comes by itself"
        return "waits for you"

    def _packagings(self) -> list[list[ArchiveState]]:
        """The archives that must be there, by packaging."""
        packagings: dict[str, list[ArchiveState]] = {}
        for state in self.archives:
            if not state.archive.get("optional"):
                packagings.setdefault(state.archive.get("packaging", ""), []).append(state)
        return list(packagings.values())

    def _can_be_had(self, packaging: list[ArchiveState]) -> bool:
        """Whether what the root lacks of a packaging is on disk or has an address; what it has is left as it is."""
        lacking = [each for each in packaging if not (self.root / each.archive["creates"]).exists()]
        return bool(lacking) and all(each.path is not None or each.archive.get("urls") for each in lacking)


def dataset_state(name: str, root: Path, archives: Path) -> DatasetState:
    """What of a data set is on disk. Pictures are not opened; the checksums of archives are read once and remembered.

    Args:
        name: name of a file in ``params/datasets``.
        root: folder that the data set's files belong to.
        archives: folder with archives, which are looked for at any depth.

    Raises:
        ValueError: if the name is unknown.
    """
    specification = load_specification(name)
    images = classes = 0
    problem = ""
    try:
        frame = read_layout(specification, root)
    except ValueError as error:
        problem = str(error)
    else:
        images, classes = frame["path"].nunique(), frame["label"].nunique()
    states = tuple(_archive_state(archive, archives) for archive in specification.get("archives", ()))
    return DatasetState(name, specification, root, images, classes, _size(root), problem, states)


def archive_faults(specification: Specification, archives: Path) -> tuple[int, list[str]]:
    """Read the data set's archives once more, whatever is remembered of them.

    A file counts as one of them if it has its name, its checksum or, to the byte, its size.

    Returns:
        How many files were read and found right, and one line for each that is not what it seems to be.
    """
    right, faults = 0, []
    for archive in specification.get("archives", ()):
        for path in candidates(archive, archives):
            try:
                difference = mismatch(path, archive, archives, anew=True)
            except OSError as error:
                difference = f"cannot be read: {error.strerror}"
            right += not difference
            if difference and (path.name == archive["file"] or "size" in archive):
                faults.append(f"{path} is not {archive['file']}: it {difference}")
    return right, faults


def data_faults(specification: Specification, root: Path, manifest: Path) -> tuple[int, list[str]]:
    """Compare a data set's files with their counts and, where there is a manifest, each byte with it.

    Returns:
        How many listed pictures there are, and one line per fault. Counts are told once no listed file is missing.
    """
    faults = []
    listed = None
    if manifest.is_file():
        try:
            listed = read_manifest(manifest)
        except ValueError as error:
            faults.append(str(error))
        else:
            faults += altered_files(listed, root)
            if any(not (root / path).is_file() for path in listed["path"]):
                return listed["path"].nunique(), faults
    try:
        frame = read_layout(specification, root)
    except ValueError as error:
        return 0 if listed is None else listed["path"].nunique(), [*faults, str(error)]
    if listed is not None:
        columns = ["path", "label", "role"]
        rows, listed_rows = (set(table[columns].itertuples(index=False, name=None)) for table in (frame, listed))
        if odd := sorted(rows ^ listed_rows):
            faults.append(
                f"{manifest} and {root} differ in {len(odd)} rows, the first for {odd[0][0]}; make the split again"
            )
    return frame["path"].nunique(), faults


def _archive_state(archive: Mapping[str, Any], folder: Path) -> ArchiveState:
    path = find_on_disk(archive, folder)
    if path is not None:
        return ArchiveState(archive, path, "" if expected_digest(archive) else "no checksum is published")
    named, part = folder / archive["file"], folder / f"{archive['file']}.part"
    if named.is_file():
        return ArchiveState(archive, None, f"{named} {mismatch(named, archive, folder)}")
    if part.is_file():
        return ArchiveState(archive, None, f"{part.stat().st_size} bytes of a broken download, to be gone on with")
    return ArchiveState(archive, None, "")


def _size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    size, pending = 0, [folder] if folder.is_dir() else []
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                else:
                    size += entry.stat(follow_symlinks=False).st_size
    return size
