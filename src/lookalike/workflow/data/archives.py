"""Unpack tar and zip archives: beside their folder, which gets its name when it is whole.

What is allowed is up to the standard library: `tarfile`'s data filter refuses devices, pipes, and names and links that
lead out of the folder; `zipfile` makes such names lead into it. Files of desktop systems (``__MACOSX``, ``._x``,
``.DS_Store``, ``Thumbs.db``) are left out.
"""

from __future__ import annotations

import errno
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from lookalike.workflow.data.junk import is_junk

# Raised for broken archives. NotImplementedError and RuntimeError are zipfile's words for an unknown compression and
# for encryption; broken headers cause the errors of values and places.
_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, OverflowError, IndexError),
)


class ArchiveError(ValueError):
    """An archive is damaged or holds a forbidden entry; the message names the archive."""


def is_archive(path: Path) -> bool:
    """Whether the file is a tar (also gzip, bzip2, xz) or a zip, judged by its beginning (tar) or its end (zip)."""
    return tarfile.is_tarfile(path) or zipfile.is_zipfile(path)


@contextmanager
def workspace(target: Path) -> Iterator[Path]:
    """An empty folder beside ``target`` for its content to come; removed at the end, if it still has its name.

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


def extract(archive: Path, folder: Path) -> None:
    """Unpack an archive into an existing folder.

    Args:
        archive: tar (also gzip, bzip2, xz) or zip.
        folder: of a `workspace`, so that it gets its name when it is whole.

    Raises:
        ArchiveError: if the archive is damaged or holds what is not allowed.
        OSError: if it cannot be read or the disk is full; the message names both paths.
    """
    try:
        if tarfile.is_tarfile(archive):
            _extract_tar(archive, folder)
        else:
            with zipfile.ZipFile(archive) as opened:
                _extract_zip(opened, folder)
    except tarfile.FilterError as error:
        raise ArchiveError(f"{archive}: {error}") from None
    except _DAMAGE as error:
        raise ArchiveError(f"{archive} is no tar or zip archive, cut short, damaged or encrypted: {error}") from error
    except OSError as error:
        if error.errno in (None, errno.EINVAL):  # gzip and bz2 say so that the bytes are wrong; a place before the file
            raise ArchiveError(f"{archive} is damaged: {error}") from error
        raise OSError(error.errno, f"{archive} cannot be unpacked into {folder}: {error.strerror}") from error


def _extract_zip(opened: zipfile.ZipFile, folder: Path) -> None:
    for member in opened.infolist():
        member.filename = member.filename.replace("\\", "/")  # by which old programs of Windows part folders
        if not is_junk(member.filename):
            opened.extract(member, folder)


def _extract_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive, tarinfo=_StrictHeader) as tar:
        tar.extractall(folder, _members(tar), filter="data")
        while tar.fileobj and tar.fileobj.read(2**20):  # to the end, where gzip, bzip2 and xz keep their checksums
            pass


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # it keeps every header, 0.5 GB for 500,000 images
        if not is_junk(member.name):
            yield member


class _StrictHeader(tarfile.TarInfo):
    """A header that makes reading fail at a cut or damaged place, which `tarfile` takes for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _StrictHeader:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the regular end
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
