"""From a data set's specification to its files on disk."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from lookalike.base.paths import project_root
from lookalike.workflow.data.archives import ArchiveError, extract, is_archive, workspace
from lookalike.workflow.data.checksums import expected_digest, recorded_digest
from lookalike.workflow.data.download import DownloadError, fetch, find_on_disk
from lookalike.workflow.data.splits import read_layout
from lookalike.workflow.settings.datasets import Archive, Dataset

LOG = logging.getLogger(__name__)
SOURCE = ".source"  # inside a root: the SHA-256 of the user's archive that it was unpacked from


def ensure_data(specification: Dataset, root: Path, archives_folder: Path) -> Path:
    """The folder with a data set's files, complete and counted.

    A root that can be read is left alone. Otherwise archives are found on disk or downloaded, unpacked beside the root,
    counted there, and only then given its name. Optional archives come along if they can be had.

    Args:
        specification: content of a file in ``params/datasets``; ``folder`` or ``archive`` (paths, relative to the
            project) name data of the user's own, the first read in place, the second unpacked anew whenever its bytes
            change.
        root: folder that the files belong to.
        archives_folder: where archives are looked for, and downloads are kept.

    Returns:
        ``root``, or the user's own folder.

    Raises:
        ValueError: if the files are not what the specification says.
        ArchiveError: if an archive is damaged or holds what is not allowed.
        DownloadError: if an archive is neither on disk nor can be downloaded; says what to do by hand.
        OSError: if a disk is full or cannot be written to.
    """
    if specification.folder:
        root = project_root() / specification.folder
    elif specification.archive:
        _unpack_own_archive(specification, root, archives_folder)
    elif not _is_readable(specification, root):
        _unpack_missing(_fetch_missing(specification, root, archives_folder), specification, root)
    read_layout(specification, root)
    return root


def fetched_by_hand(specification: Dataset, root: Path, archives_folder: Path) -> list[str]:
    """Files that only a person can get, for want of an address, and that are neither unpacked nor on disk; or the root.

    Args:
        specification: content of a file in ``params/datasets``.
        root: folder that the files belong to.
        archives_folder: where archives are looked for.
    """
    if not specification.archives and not root.is_dir():
        return [f"its pictures in {root}"]
    return [
        archive.file
        for archive in _packaging(specification, root, archives_folder)
        if not (archive.optional or archive.urls or (root / archive.creates).exists())
        and find_on_disk(archive, archives_folder) is None
    ]


def _fetch_missing(specification: Dataset, root: Path, archives_folder: Path) -> list[tuple[Archive, Path]]:
    """Archives whose files the root lacks, and where they are; optional ones only if they can be had."""
    manual = specification.manual
    fetched = []
    for archive in _packaging(specification, root, archives_folder):
        if (root / archive.creates).exists():
            continue
        try:
            fetched.append((archive, fetch(archive, archives_folder, manual=manual)))
        except DownloadError as error:
            if not archive.optional:
                raise
            LOG.warning("going on without an optional archive: %s", error)
    if not fetched and not root.exists():
        raise DownloadError(f"{specification.title} has no address. By hand, into {root}: {manual}")
    return fetched


def _packaging(specification: Dataset, root: Path, archives_folder: Path) -> list[Archive]:
    """The archives of one packaging: with its files in the root, else its archives on disk, else addresses."""
    packagings: dict[str, list[Archive]] = {}
    for archive in specification.archives:
        packagings.setdefault(archive.packaging, []).append(archive)
    tests: list[Callable[[Archive], bool]] = [
        lambda archive: (root / archive.creates).exists(),
        lambda archive: find_on_disk(archive, archives_folder) is not None,
        lambda archive: bool(archive.urls),
    ]
    for number in range(1, len(tests) + 1):
        for archives in packagings.values():
            needed = [archive for archive in archives if not archive.optional]
            if all(any(test(archive) for test in tests[:number]) for archive in needed):
                return archives
    return next(iter(packagings.values()), [])


def _unpack_missing(fetched: Sequence[tuple[Archive, Path]], specification: Dataset, root: Path) -> None:
    with workspace(root) as staging:
        for archive, path in fetched:
            if not (root / archive.creates).exists():  # another process may have been here
                _unpack_into(staging, archive, path)
        if root.exists():
            _merge(staging, root)
        else:
            _check_unpacked(specification, staging, [path for _, path in fetched])
            staging.rename(root)


def _unpack_into(staging: Path, archive: Archive, path: Path) -> None:
    """Unpack an archive, or copy a file that is none, to its place below ``staging``."""
    folder = staging / archive.into
    folder.mkdir(parents=True, exist_ok=True)
    if is_archive(path):
        try:
            extract(path, folder)
        except ArchiveError as error:
            if expected_digest(archive) is not None or not archive.urls:
                raise
            aside = path.replace(path.with_name(f"{path.name}.refused"))  # or it would be found here again and again
            raise ArchiveError(f"{error}; it is now {aside}, and the next call asks its addresses again") from None
    else:
        shutil.copyfile(path, folder / archive.file)
    if not (staging / archive.creates).exists():
        raise ValueError(f"{path} does not hold {archive.creates}")


def _merge(source: Path, target: Path) -> None:
    for entry in sorted(source.iterdir()):
        destination = target / entry.name
        if entry.is_dir() and destination.is_dir():
            _merge(entry, destination)
        else:
            entry.replace(destination)


def _unpack_own_archive(specification: Dataset, root: Path, archives_folder: Path) -> None:
    archive = project_root() / specification.archive
    if not archive.is_file():
        raise ValueError(f"archive {archive} does not exist")
    digest = recorded_digest(archive, "sha256", archives_folder)
    with workspace(root) as staging:
        if root.exists() and not (root / SOURCE).is_file():
            raise ValueError(f"{root} exists, and was not unpacked from an archive; remove it to use {archive}")
        if root.exists() and (root / SOURCE).read_text(encoding="utf-8") == digest:
            return
        extract(archive, staging)
        _check_unpacked(specification, staging, [archive])
        (staging / SOURCE).write_text(digest, encoding="utf-8")
        if root.exists():
            shutil.rmtree(root)
        staging.rename(root)


def _check_unpacked(specification: Dataset, staging: Path, archives: Sequence[Path]) -> None:
    """Read the unpacked files; a message names places inside the archives, since the folder will not stay."""
    try:
        read_layout(specification, staging)
    except ValueError as error:
        inside = str(error).replace(f"{staging}/", "").replace(str(staging), "the archive")
        raise ValueError(f"{inside} (unpacked from {', '.join(map(str, archives))})") from None


def _is_readable(specification: Dataset, root: Path) -> bool:
    try:
        read_layout(specification, root)
    except ValueError:
        return False
    return True
