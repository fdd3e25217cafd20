"""Archives: those on disk first, then one address after the other, by pooch.

An archive has its name once its size and digest are right. A transfer that breaks off leaves ``<name>.part``, with
which the next attempt goes on.
"""

from __future__ import annotations

import errno
import http.client
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from tqdm import tqdm

from lookalike.base.checks import workflow_extra
from lookalike.workflow.data.checksums import expected_digest, mismatch, record_digest, size_fault
from lookalike.workflow.settings.datasets import Archive

LOG = logging.getLogger(__name__)
CHUNK_BYTES = 2**20


class DownloadError(RuntimeError):
    """No address served the archive; the message tells the remedy by hand."""


class TransferError(Exception):
    """One address does not serve the archive."""


class InterruptedTransferError(TransferError):
    """The connection broke; the bytes that arrived so far are worth keeping."""


def fetch(archive: Archive, folder: Path, *, manual: str = "", timeout_s: float = 30.0, pause_s: float = 2.0) -> Path:
    """An archive on disk that has the stated size and digest.

    It is looked up anywhere below ``folder``, whatever its name there, and otherwise downloaded. A second process that
    asks for it at the same time waits and finds it.

    Args:
        archive: ``file``, ``urls``, ``size`` and ``sha256`` or ``md5``, as in ``params/datasets``.
        folder: where downloads are kept.
        manual: what a person can do if no address works.
        timeout_s: seconds without an answer after which an address is given up.
        pause_s: seconds before a broken transfer is taken up again.

    Returns:
        The path of the archive.

    Raises:
        DownloadError: if no address serves it.
        OSError: if ``folder`` cannot be written to or is full.
    """
    if (on_disk := find_on_disk(archive, folder)) is not None:
        return on_disk
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / archive.file
    with FileLock(folder / f".{archive.file}.lock"):
        if (on_disk := find_on_disk(archive, folder)) is not None:
            return on_disk
        problems = [f"{target} {mismatch(target, archive, folder)}"] if target.is_file() else []
        transfer = Transfer(archive, target.with_name(f"{target.name}.part"), timeout_s, pause_s)
        for url in archive.urls:
            try:
                return _retrieved(url, archive, target, transfer)
            except TransferError as error:
                LOG.warning("%s %s", url, error)
                problems.append(f"{url} {error}")
            except OSError as error:
                raise OSError(error.errno, f"{transfer.part} cannot be written: {error.strerror}") from error
    name = "under any name" if expected_digest(archive) else f"as {archive.file}"
    raise DownloadError(
        f"{archive.file} cannot be fetched: {'; '.join(problems) or 'it has no address'}. "
        f"By hand: {manual or 'download it'}; put the file into {folder}, {name}"
    )


def find_on_disk(archive: Archive, folder: Path) -> Path | None:
    """The archive anywhere below a folder, known by its digest whatever its name, else by its name."""
    for path in candidates(archive, folder):
        with suppress(OSError):  # somebody else's file that cannot be read is not the archive
            if not mismatch(path, archive, folder):
                return path
    return None


def candidates(archive: Archive, folder: Path) -> Iterator[Path]:
    """Files below a folder that may be the archive, its own first.

    These are files of the archive's name and, where a digest is stated, those of its size, or of its kind where the
    size is unknown.
    """
    named = folder / archive.file
    if named.is_file():
        yield named
    has_digest = expected_digest(archive) is not None
    for path in _files_below(folder):
        if path == named:
            continue
        fits = path.stat().st_size == archive.size if archive.size else path.suffix == named.suffix
        if path.name == named.name or (has_digest and fits):
            yield path


def _files_below(folder: Path) -> Iterator[Path]:
    """Files that are neither hidden nor half downloaded, links to folders followed, each folder once."""
    seen: set[str] = set()
    for current, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(current)
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith("."))
        if real in seen:
            continue
        seen.add(real)
        for path in (Path(current, name) for name in sorted(names) if not name.startswith(".")):
            if path.suffix != ".part" and path.is_file():
                yield path


def _retrieved(url: str, archive: Archive, target: Path, transfer: Transfer) -> Path:
    """The archive from one address; again from its start, where the part on disk was of another file."""
    with workflow_extra():
        import pooch
    pooch.get_logger().setLevel(logging.WARNING)
    expected = expected_digest(archive)
    if expected is None:
        transfer.part.unlink(missing_ok=True)  # nothing would tell whether two pieces belong together
    resumed = transfer.part.is_file()
    try:
        # Under another name: pooch would take a file of this name for the archive, where no digest is published.
        known = expected and ":".join(expected)
        fetched = pooch.retrieve(url, known, f".{target.name}", target.parent, downloader=transfer)
    except ValueError as error:  # of the size, or by pooch of the digest
        transfer.part.unlink(missing_ok=True)
        if resumed:
            return _retrieved(url, archive, target, transfer)
        raise TransferError(f"serves another file: {str(error).partition('. ')[0]}") from None
    Path(fetched).replace(target)
    if expected is not None:
        record_digest(target, *expected, target.parent)
    return target


@dataclass(frozen=True)
class Transfer:
    """A downloader of pooch that goes on where an earlier transfer broke off, as long as more arrives.

    Attributes:
        archive: ``file``, and ``size`` where it is known.
        part: file of what has arrived.
        timeout_s: seconds without an answer after which the address is given up.
        pause_s: seconds before a broken transfer is taken up again.
    """

    archive: Archive
    part: Path
    timeout_s: float
    pause_s: float

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Write the whole file.

        Raises:
            TransferError: if the address does not serve it.
            ValueError: if it is not of the archive's size, or no archive.
            OSError: if it cannot be written.
        """
        Path(output_file).unlink()  # pooch's, empty until the end: a killed process would leave it
        while True:
            before = self._bytes
            try:
                self._append(url)
                break
            except InterruptedTransferError:
                if self._bytes <= before:
                    raise
                time.sleep(self.pause_s)
        if fault := size_fault(self.part, self.archive):
            raise ValueError(f"it {fault}")
        self.part.replace(output_file)

    @property
    def _bytes(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _append(self, url: str) -> None:
        """Append the missing bytes to the part, or write it anew where the server cannot begin in the middle."""
        have, size = self._bytes, self.archive.size
        if have and have == size:
            return
        with self._opened(url, have) as response:
            begins = have if getattr(response, "status", None) == http.client.PARTIAL_CONTENT else 0
            total = _total(response, begins, size)
            if total is not None and total - begins > shutil.disk_usage(self.part.parent).free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with (
                self.part.open("ab" if begins else "wb") as stream,
                tqdm(
                    desc=self.part.stem, total=total, initial=begins, unit="B", unit_scale=True, disable=None
                ) as progress,
            ):
                for chunk in _chunks(response):
                    stream.write(chunk)
                    progress.update(len(chunk))
        if total is not None and self._bytes < total:
            raise InterruptedTransferError(f"broke off after {self._bytes} of {total} bytes")

    def _opened(self, url: str, have: int) -> Any:
        """The response, from byte ``have`` on if the server can."""
        headers = {"User-Agent": "lookalike", "Accept-Encoding": "identity"}
        headers |= {"Range": f"bytes={have}-"} if have else {}
        try:
            return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=self.timeout_s)
        except urllib.error.HTTPError as error:
            error.close()
            if have and error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                return self._opened(url, 0)
            raise TransferError(f"answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise InterruptedTransferError(f"does not answer: {getattr(error, 'reason', error)}") from None


def _total(response: Any, begins: int, size: int | None) -> int | None:
    """Bytes of the whole file, as far as stated; an answer that cannot be the archive is refused."""
    if response.headers.get_content_type() == "text/html":
        raise TransferError("answers with a web page, as for a quota or a login")
    if begins and not response.headers.get("Content-Range", "").startswith(f"bytes {begins}-"):
        raise TransferError(f"does not go on at byte {begins}, as asked for")
    length = response.headers.get("Content-Length")
    total = begins + int(length) if length is not None and length.isdigit() else size
    if size is not None and total != size:
        raise TransferError(f"announces {total} bytes instead of {size}")
    return total


def _chunks(response: Any) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise InterruptedTransferError(f"broke off: {error}") from None
        if not chunk:
            return
        yield chunk
