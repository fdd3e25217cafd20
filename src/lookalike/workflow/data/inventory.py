"""Inventory of data sets, as ``lookalike data`` prints it: files present, files missing and how to get them, faults."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lookalike.base.paths import archives_of, project_root
from lookalike.base.text import WIDTH, counted, error_line, human_bytes, one_line
from lookalike.workflow.data.checksums import expected_digest, mismatch
from lookalike.workflow.data.download import candidates, find_on_disk
from lookalike.workflow.data.manifest import altered_files, read_manifest
from lookalike.workflow.data.pictures import copies_of, copy_faults
from lookalike.workflow.data.splits import load_specification, read_layout
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import Archive, Dataset
from lookalike.workflow.settings.files import read

READY, BY_ITSELF, BY_A_PERSON = "Ready", "Come by themselves", "Wait for you"
UNREADABLE = "make it readable, or remove it"


def archives_folder() -> Path:
    """Folder of archives: ``$LOOKALIKE_ARCHIVES``, else ``archives`` of ``params/config.yaml``."""
    return project_root() / archives_of(read("params/config.yaml", Configuration).dump()["archives"])


def status(names: Iterable[str], data: Path, archives: Path) -> int:
    """Print the files of each data set that are on disk, and how to get the others.

    Pictures are not opened; the digests of archives are read once and recorded.

    Args:
        names: names of files in ``params/datasets``.
        data: folder of unpacked data, ``<name>`` below it for each data set.
        archives: folder of archives, at any depth.

    Returns:
        1 if something cannot be read, whose data set is told as a fault, else 0, whatever is missing.
    """
    print(f"Data below {_short(data)}, archives anywhere below {_short(archives)}\n")
    by_readiness: dict[str, list[str]] = {title: [] for title in (READY, BY_ITSELF, BY_A_PERSON)}
    faults = 0
    for name in names:
        try:
            state = _state(name, data / name, archives)
        except (OSError, ValueError) as error:
            print(f"fault  {name}: {error_line(error)}\n", flush=True)
            faults += 1
            continue
        faults += sum(each.is_unreadable for each in state.archives)
        by_readiness[state.readiness].append(name)
        print(f"{name}: {state.specification.title}")
        for title, text in _facts(state, data / "splits" / f"{name}.csv"):
            print(_wrapped(title, text))
        print(flush=True)
    for title, listed in by_readiness.items():
        print(textwrap.fill(f"{title}: {', '.join(listed) or 'none'}", WIDTH, subsequent_indent="  "))
    return int(faults > 0)


def verify(names: Iterable[str], data: Path, archives: Path) -> int:
    """Read every archive, unpacked file and resized copy of the data sets again.

    Args:
        names: names of files in ``params/datasets``.
        data: folder of unpacked data; the manifest of a data set is ``splits/<name>.csv`` below it.
        archives: folder of archives.

    Returns:
        1 if there is a fault, else 0. Each fault is one line.
    """
    count = 0
    for name in names:
        try:
            for subject, faults in _checks(name, data, archives):
                for fault in faults:
                    print(f"fault  {name}: {one_line(fault)}", flush=True)
                if not faults:
                    print(f"ok     {name}: {subject}", flush=True)
                count += len(faults)
        except (OSError, ValueError) as error:
            print(f"fault  {name}: {error_line(error)}", flush=True)
            count += 1
    print(counted(count, "fault"))
    return int(count > 0)


@dataclass(frozen=True)
class _ArchiveState:
    """One archive: its file, ``None`` if it is not on disk, and a remark on that."""

    archive: Archive
    path: Path | None
    remark: str
    is_unreadable: bool = False


@dataclass(frozen=True)
class _State:
    """One data set: the numbers of its pictures and classes, bytes below its root, and why that cannot be read."""

    specification: Dataset
    root: Path
    images: int
    classes: int
    size: int
    problem: str
    archives: tuple[_ArchiveState, ...]

    @property
    def readiness(self) -> str:
        if not self.problem:
            return READY
        packagings: dict[str, list[_ArchiveState]] = {}
        for each in self.archives:
            if not each.archive.optional:
                packagings.setdefault(each.archive.packaging, []).append(each)
        if self.specification.generator or any(map(self._can_be_had, packagings.values())):
            return BY_ITSELF
        return BY_A_PERSON

    def _can_be_had(self, packaging: list[_ArchiveState]) -> bool:
        """Whether the archives of files that the root lacks are on disk or have an address; other files stay."""
        lacking = [each for each in packaging if not (self.root / each.archive.creates).exists()]
        return bool(lacking) and all(each.path is not None or each.archive.urls for each in lacking)


def _state(name: str, root: Path, archives: Path) -> _State:
    specification = load_specification(name)
    images = classes = 0
    problem = ""
    try:
        frame = read_layout(specification, root)
    except ValueError as error:
        problem = str(error)
    else:
        images, classes = frame["path"].nunique(), frame["label"].nunique()
    states = tuple(_archive_state(archive, archives) for archive in specification.archives)
    return _State(specification, root, images, classes, _size(root), problem, states)


def _archive_state(archive: Archive, folder: Path) -> _ArchiveState:
    if (path := find_on_disk(archive, folder)) is not None:
        remark = "checksum verified" if expected_digest(archive) else "no checksum is published"
        return _ArchiveState(archive, path, f"{_short(path)}, {remark}")
    named, part = folder / archive.file, folder / f"{archive.file}.part"
    if named.is_file():
        try:
            return _ArchiveState(archive, None, f"{named} {mismatch(named, archive, folder)}")
        except OSError as error:
            return _ArchiveState(archive, None, f"{named} cannot be read: {error.strerror}; {UNREADABLE}", True)
    if part.is_file():
        remark = f"{part.stat().st_size} bytes of a broken download, to be gone on with"
        return _ArchiveState(archive, None, remark)
    return _ArchiveState(archive, None, "not on disk")


def _facts(state: _State, manifest: Path) -> Iterator[tuple[str, str]]:
    """Lines on one data set, as title and text."""
    specification = state.specification
    variants = specification.one_of
    if not state.problem:
        counts = "counts verified" if specification.counts or variants else "no counts to verify"
        bytes_of = f"bytes recorded in {_short(manifest)}" if manifest.is_file() else "no manifest yet"
        contents = f"{counted(state.images, 'picture')} of {counted(state.classes, 'class')}, {human_bytes(state.size)}"
        yield "data", f"{_short(state.root)}: {contents}; {counts}, {bytes_of}"
    elif state.root.exists():
        yield "data", f"{_short(state.root)}, {human_bytes(state.size)}: not usable: {state.problem}"
    else:
        yield "data", "not drawn yet" if specification.generator else "not unpacked yet"
    for each in state.archives:
        archive = each.archive
        words = [archive.file, human_bytes(archive.size) if archive.size else ""]
        words += [f"packaging {archive.packaging}" if archive.packaging else ""]
        words += ["optional" if archive.optional else ""]
        yield "archive", f"{', '.join(filter(None, words))}: {each.remark}"
    licensed = load_specification(variants[0]) if variants else specification
    yield "licence", licensed.licence or "not stated"
    yield "to do", _to_do(state)


def _to_do(state: _State) -> str:
    if state.readiness == READY:
        return "nothing; `lookalike data verify` reads every byte again"
    root, manual = _short(state.root), state.specification.manual
    if variants := state.specification.one_of:
        return f"name one of its variants instead, {' or '.join(variants)}, or unpack one of them into {root}"
    if state.specification.generator:
        return "nothing; the first run that uses it draws it"
    if state.readiness == BY_ITSELF:
        by_hand = f" Should an address fail: {manual}" if manual else ""
        return f"nothing; the first run that uses it gets what is missing and unpacks it.{by_hand}"
    if state.root.exists():
        return f"what {root} holds is not overwritten: complete it, or remove it to have it made anew. {manual}"
    into = f"Put the files into the archives' folder, or unpacked into {root}:" if state.archives else f"Fill {root}:"
    return f"{into} {manual}"


def _checks(name: str, data: Path, archives: Path) -> Iterator[tuple[str, list[str]]]:
    """Checks of one data set, each with its faults: archives and unpacked files, then resized copies."""
    specification = load_specification(name)
    right, faults = _archive_faults(specification, archives)
    report = [f"{counted(right, 'archive')} right"] if right else []
    if (data / name).exists():
        manifest = data / "splits" / f"{name}.csv"
        images, of_data = _data_faults(specification, data / name, manifest)
        faults += of_data
        how = "each byte as in the manifest" if manifest.is_file() else "counted only, there is no manifest"
        report.append(f"{counted(images, 'picture')}, {how}")
    yield "; ".join(report) or "nothing on disk", faults
    for copy in copies_of(name, data / "pictures"):
        yield f"resized copy {_short(copy)}, each byte as it was written", copy_faults(copy)


def _archive_faults(specification: Dataset, archives: Path) -> tuple[int, list[str]]:
    """Number of archives read and found right, and one line for each file that is not the archive it seems to be.

    A file counts as an archive if it has its name, its digest or, to the byte, its size.
    """
    right, faults = 0, []
    for archive in specification.archives:
        for path in candidates(archive, archives):
            try:
                difference = mismatch(path, archive, archives, anew=True)
            except OSError as error:
                difference = f"cannot be read: {error.strerror}"
            right += not difference
            if difference and (path.name == archive.file or archive.size):
                faults.append(f"{path} is not {archive.file}: it {difference}")
    return right, faults


def _data_faults(specification: Dataset, root: Path, manifest: Path) -> tuple[int, list[str]]:
    """Number of listed pictures, and one line per fault of counts and, where there is a manifest, of bytes.

    Counts are told once no listed file is missing.
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


def _size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(Path(current, name).lstat().st_size for current, _, names in os.walk(folder) for name in names)


def _wrapped(title: str, text: str) -> str:
    start = f"  {title:<9}"
    return textwrap.fill(
        one_line(text),
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _short(path: Path) -> str:
    """The path relative to the project, where it lies in there."""
    try:
        return str(path.relative_to(project_root()))
    except ValueError:
        return str(path)
