"""Fetch archives: what is on disk first, then one address after the other, never trusting what arrives."""

from __future__ import annotations

import errno
import http.client
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock
from tqdm import tqdm

from lookalike.data.checksums import expected_digest, find_on_disk, mismatch, move_remembered

LOG = logging.getLogger(__name__)
CHUNK_BYTES = 2**20


class DownloadError(RuntimeError):
    """No address served the archive; the message says what to do by hand."""


class TransferError(Exception):
    """One address does not serve the archive."""


class InterruptedTransferError(TransferError):
    """The connection broke; what arrived so far is worth keeping."""


def fetch(
    archive: Mapping[str, Any],
    folder: Path,
    *,
    search_folders: Iterable[Path] = (),
    manual: str = "",
    timeout_s: float = 30.0,
    pause_s: float = 2.0,
) -> Path:
    """An archive on disk that has the stated size and checksum.

    It is looked up in ``folder`` and ``search_folders``, whatever its name there, and otherwise downloaded. A second
    process that asks for it at the same time waits and finds it.

    Args:
        archive: ``file``, ``urls``, ``size`` and ``sha256`` or ``md5``, as in ``params/datasets``.
        folder: where downloads are kept.
        search_folders: further folders to look in.
        manual: what a person can do if no address works.
        timeout_s: seconds without an answer after which an address is given up.
        pause_s: seconds before a broken transfer is taken up again.

    Returns:
        The path of the archive, in ``folder`` or where it was found.

    Raises:
        DownloadError: if no address serves it.
        OSError: if ``folder`` cannot be written to or is full.
    """
    folders = [folder, *search_folders]
    on_disk = find_on_disk(archive, folders, folder)
    if on_disk is not None:
        return on_disk
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / archive["file"]
    with FileLock(folder / f".{archive['file']}.lock"):
        on_disk = find_on_disk(archive, folders, folder)
        if on_disk is not None:
            return on_disk
        problems = [f"{target} {mismatch(target, archive, folder)}"] if target.is_file() else []
        for url in archive.get("urls", ()):
            try:
                return _from_address(url, archive, target, timeout_s, pause_s)
            except TransferError as error:
                LOG.warning("%s %s", url, error)
                problems.append(f"{url} {error}")
            except OSError as error:
                raise OSError(error.errno, f"{target}.part cannot be written: {error.strerror}") from error
    name = "under any name" if expected_digest(archive) else f"as {archive['file']}"
    raise DownloadError(
        f"{archive['file']} cannot be fetched: {'; '.join(problems) or 'it has no address'}. "
        f"By hand: {manual or 'download it'}; put the file into {folder}, {name}"
    )


def _from_address(url: str, archive: Mapping[str, Any], target: Path, timeout_s: float, pause_s: float) -> Path:
    """Transfer, take up again as long as more arrives, compare, rename."""
    part = target.with_name(f"{target.name}.part")
    if expected_digest(archive) is None:
        part.unlink(missing_ok=True)  # nothing would tell whether two pieces belong together
    resumed = part.is_file()
    while True:
        before = _bytes(part)
        try:
            _transfer(url, archive, part, timeout_s)
        except InterruptedTransferError:
            if _bytes(part) <= before:
                raise
            resumed = True
            time.sleep(pause_s)
            continue
        difference = mismatch(part, archive, target.parent)
        if not difference:
            return move_remembered(part, target, target.parent)
        part.unlink()
        if not resumed:
            raise TransferError(f"serves a file that {difference}")
        resumed = False  # the beginning may have come from somewhere else: once more, from the start


def _transfer(url: str, archive: Mapping[str, Any], part: Path, timeout_s: float) -> None:
    """Append what is missing to ``part``, or write it anew where the server cannot begin in the middle."""
    size, have = archive.get("size"), _bytes(part)
    if have and have == size:
        return
    with _opened(url, have, timeout_s) as response:
        begins = have if getattr(response, "status", None) == http.client.PARTIAL_CONTENT else 0
        total = _total(response, begins, size)
        if total is not None and total - begins > shutil.disk_usage(part.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with (
            part.open("ab" if begins else "wb") as stream,
            tqdm(desc=part.stem, total=total, initial=begins, unit="B", unit_scale=True, disable=None) as progress,
        ):
            for chunk in _chunks(response):
                stream.write(chunk)
                progress.update(len(chunk))
                if total is not None and stream.tell() > total:
                    break
    if total is not None and _bytes(part) < total:
        raise InterruptedTransferError(f"broke off after {_bytes(part)} of {total} bytes")


def _opened(url: str, have: int, timeout_s: float) -> Any:
    """The response, from byte ``have`` on if the server can."""
    headers = {"User-Agent": "lookalike", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if have and error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return _opened(url, 0, timeout_s)
        raise TransferError(f"answers {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InterruptedTransferError(f"does not answer: {getattr(error, 'reason', error)}") from None


def _total(response: Any, begins: int, size: int | None) -> int | None:
    """Bytes of the whole file, as far as stated; an answer that cannot be the archive ends here."""
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


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
