"""The members of tar and zip archives, one by one and in one form."""

from __future__ import annotations

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# What the libraries raise for archives that are broken; NotImplementedError and RuntimeError are zipfile's words for an
# unknown compression and for encryption, the errors of values and places come from broken headers.
DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    IndexError,
)
Kind = Literal["file", "folder", "symbolic link", "hard link", "other"]

_HEADER_BYTES = 2**20  # long names and extended headers are read into memory; real ones have some hundred bytes
_PADDING_BYTES = 2**24  # what may follow the last member; tar fills up its last block of 10 KiB or so


@dataclass(frozen=True)
class Member:
    """One member of an archive.

    Attributes:
        name: path as it is written in the archive.
        kind: ``other`` for devices and pipes, and for links in a zip.
        size: unpacked bytes.
        target: what a link points to, else empty.
        extract: writes the member below the folder it is called with.
    """

    name: str
    kind: Kind
    size: int
    target: str
    extract: Callable[[Path], object]


def members(archive: Path) -> Iterator[Member]:
    """The members in the archive's order.

    Raises:
        ReadError: if the file is neither a tar (also gzip, bzip2, xz) nor a zip.
        One of ``DAMAGE``, or ``OSError``: if it is damaged or cannot be read.
    """
    if tarfile.is_tarfile(archive):
        return _tar_members(archive)
    if zipfile.is_zipfile(archive):
        return _zip_members(archive)
    raise tarfile.ReadError("neither a tar (also gzip, bzip2, xz) nor a zip archive")


def is_archive(path: Path) -> bool:
    """Whether the file is a tar or a zip, judged by its beginning (tar) or its end (zip)."""
    return tarfile.is_tarfile(path) or zipfile.is_zipfile(path)


class _StrictHeader(tarfile.TarInfo):
    """A header that makes reading fail where the library would stop in silence: at a cut or an overwritten place."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _StrictHeader:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the regular end
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
        extension = not (header.isfile() or header.isdir() or header.issym() or header.islnk() or header.isdev())
        if header.size < 0 or (extension and header.size > _HEADER_BYTES):
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


def _tar_members(archive: Path) -> Iterator[Member]:
    with tarfile.open(archive, tarinfo=_StrictHeader) as tar:
        while (header := tar.next()) is not None:
            # The library keeps every header, 0.5 GB for 500,000 images.
            tar.members.clear()  # type: ignore[attr-defined]

            def extract(folder: Path, header: tarfile.TarInfo = header) -> None:
                tar.extract(header, folder, set_attrs=False, filter="data")

            yield Member(header.name, _tar_kind(header), header.size, header.linkname, extract)
        for _ in range(0, _PADDING_BYTES, 2**20):  # to the end, where gzip, bzip2 and xz keep their checksums
            if tar.fileobj is None or not tar.fileobj.read(2**20):
                return
        raise tarfile.ReadError(f"more than {_PADDING_BYTES} bytes behind the last member")


def _tar_kind(header: tarfile.TarInfo) -> Kind:
    if header.isfile():
        return "file"
    if header.isdir():
        return "folder"
    if header.issym():
        return "symbolic link"
    return "hard link" if header.islnk() else "other"


def _zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if not entry.filename:  # which Python 3.13 would unpack to nothing
                raise zipfile.BadZipFile("a member of no name")

            def extract(folder: Path, entry: zipfile.ZipInfo = entry) -> None:
                opened.extract(entry, folder)

            kind: Kind = "folder" if entry.is_dir() else "file"
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = "other"
            # The library cuts a name at NUL; the original shows what was meant.
            yield Member(entry.orig_filename, kind, entry.file_size, "", extract)
