"""Unpack tar and zip archives that nobody has to trust.

Refused, with nothing left behind:

* names that are absolute, lead upwards, hold a backslash, a control character or bytes that are no UTF-8;
* links that lead out of the folder or through another link, members below a link, devices and pipes;
* archives that unpack to more than ``Limits`` allow, that end early, or whose checksums are wrong.

What desktop systems leave behind (``__MACOSX``, ``._x``, ``.DS_Store``, ``Thumbs.db``) is passed over. Of several
members of one name the last one wins, as in ``tar`` and ``unzip -o``.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from filelock import FileLock

from lookalike.data.junk import is_junk
from lookalike.data.members import DAMAGE, Member, members

# Control characters, the backslash, and surrogates, which stand for bytes that are no UTF-8.
_REFUSED_CHARACTER = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


class ArchiveError(ValueError):
    """An archive is damaged or hostile; the message names the archive and the member."""


@dataclass(frozen=True)
class Limits:
    """What an archive may grow to.

    Attributes:
        ratio: unpacked bytes per byte of the archive; pictures do not shrink and lists of names shrink tenfold.
        total_bytes: unpacked bytes in all; the largest data set, mini-iNaturalist, has 45 GB.
        members: number of members; the same data set has 510,000.
    """

    ratio: float = 100.0
    total_bytes: int = 250 * 10**9
    members: int = 5_000_000


def unpack(archive: Path, target: Path, *, limits: Limits | None = None) -> Path:
    """Unpack an archive into a folder that does not exist yet.

    The folder appears when it is whole. A second process waits for the first and finds it there.

    Args:
        archive: tar (also gzip, bzip2, xz) or zip.
        target: the new folder; left as it is if it exists.
        limits: what the archive may grow to.

    Returns:
        ``target``.

    Raises:
        ArchiveError: if the archive breaks a rule or is damaged.
        OSError: if it cannot be read or the disk is full; the message names both paths.
    """
    with workspace(target) as staging:
        if not target.exists():
            extract(archive, staging, limits=limits)
            staging.rename(target)
    return target


@contextmanager
def workspace(target: Path) -> Iterator[Path]:
    """An empty folder beside ``target`` for what will become it; removed at the end, if it still has its name.

    Processes take turns. What a killed one left behind is removed by the next.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.parent / f".{target.name}.partial"
    with FileLock(target.parent / f".{target.name}.lock"):
        shutil.rmtree(staging, ignore_errors=True)
        try:
            staging.mkdir()
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def extract(archive: Path, folder: Path, *, limits: Limits | None = None) -> None:
    """Unpack an archive into an existing folder, under the rules of this module but not all at once.

    Raises:
        As ``unpack``.
    """
    limits = limits or Limits()
    allowed = min(limits.total_bytes, limits.ratio * archive.stat().st_size)
    size = 0
    try:
        for number, member in enumerate(members(archive), start=1):
            size += member.size
            if size > allowed or number > limits.members:
                raise ArchiveError(f"unpacks to more than {allowed:.0f} bytes or {limits.members} members")
            if not is_junk(member.name):
                _write(member, folder)
    except ArchiveError as error:
        raise ArchiveError(f"{archive}: {error}") from None
    except DAMAGE as error:
        raise ArchiveError(f"{archive} is no tar or zip archive, cut short, damaged or encrypted: {error}") from error
    except OSError as error:
        if error.errno in (None, errno.EINVAL):  # gzip and bz2 say so that the bytes are wrong; a place before the file
            raise ArchiveError(f"{archive} is damaged: {error}") from error
        raise OSError(error.errno, f"{archive} cannot be unpacked into {folder}: {error.strerror}") from error


def _write(member: Member, folder: Path) -> None:
    path = _checked_name(member.name)
    if not path.parts:  # the archive's own "./"
        return
    for parent in path.parents[:-1]:
        if (folder / parent).is_symlink() or (folder / parent).is_file():
            raise ArchiveError(f"{member.name!r} lies below {str(parent)!r}, which is a link or a file")
    destination = folder / path
    if destination.is_dir() and not destination.is_symlink():
        if member.kind != "folder":
            raise ArchiveError(f"{member.name!r} is a folder and a {member.kind}")
    else:
        destination.unlink(missing_ok=True)  # never write through a link, or into a file that has a second name
    if member.kind == "symbolic link":
        _check_symbolic_link(path, member)
    elif member.kind == "hard link":
        original = folder / _checked_name(member.target)
        if original.resolve() != folder.resolve() / _checked_name(member.target) or not original.is_file():
            raise ArchiveError(
                f"{member.name!r} is a link to {member.target!r}, which is no earlier file of the archive"
            )
    elif member.kind == "other":
        raise ArchiveError(f"{member.name!r} is neither a file nor a folder (a device, a pipe, or a link in a zip)")
    member.extract(folder)


def _checked_name(name: str) -> PurePosixPath:
    """The name as a relative path."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or _REFUSED_CHARACTER.search(name):
        raise ArchiveError(
            f"{name!r} is absolute, leads upwards, or holds a backslash, a control character or no UTF-8"
        )
    return path


def _check_symbolic_link(path: PurePosixPath, member: Member) -> None:
    """The target may first go up and then only down, so that no other link on its way can lead it elsewhere."""
    target = PurePosixPath(member.target)
    ups = next((depth for depth, part in enumerate(target.parts) if part != ".."), len(target.parts))
    if target.is_absolute() or ".." in target.parts[ups:] or ups >= len(path.parts):
        raise ArchiveError(f"{member.name!r} is a link to {member.target!r}, out of the archive's folder")
