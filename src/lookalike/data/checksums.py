"""Checksums of archives, remembered so that gigabytes are read once."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from lookalike.data.members import is_archive
from lookalike.files import state_of, write_json
from lookalike.paths import project_root

MEMORY = ".checksums.json"
ALGORITHMS = ("sha256", "md5")  # the strongest first
_ARCHIVE_NAME = re.compile(r"\.(tar|tgz|zip|tar\.\w+)$")


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Hexadecimal digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def weights_digest(weights: str | None) -> str | None:
    """SHA-256 of a weights file, the name itself for torchvision's, ``None`` without weights."""
    if weights is None:
        return None
    path = project_root() / weights
    return file_digest(path) if path.is_file() else weights


def remembered_digest(path: Path, algorithm: str, memory: Path) -> str:
    """As ``file_digest``; a file whose path, size and times of change are known is not read again.

    Args:
        path: the file.
        algorithm: ``sha256`` or ``md5``.
        memory: folder whose ``.checksums.json`` remembers. A folder that cannot be written to remembers nothing.
    """
    key = _key(path, algorithm)
    known = _recall(memory / MEMORY).get(key)
    if known is not None:
        return known
    digest = file_digest(path, algorithm)
    with suppress(OSError):
        _remember(memory / MEMORY, key, digest)
    return digest


def _key(path: Path, algorithm: str) -> str:
    return "|".join(map(str, (path.resolve(), *state_of(path.stat()), algorithm)))


def expected_digest(archive: Mapping[str, Any]) -> tuple[str, str] | None:
    """Algorithm and digest of an archive's specification, the strongest stated; ``None`` where none is published."""
    return next(((algorithm, archive[algorithm]) for algorithm in ALGORITHMS if algorithm in archive), None)


def mismatch(path: Path, archive: Mapping[str, Any], memory: Path) -> str:
    """What tells a file from the archive of a specification, empty where nothing does."""
    size = path.stat().st_size
    if archive.get("size", size) != size:
        return f"has {size} bytes instead of {archive['size']}"
    if (expected := expected_digest(archive)) is None:
        return "" if is_archive(path) or not _ARCHIVE_NAME.search(archive["file"]) else "is no whole archive"
    algorithm, digest = expected
    actual = remembered_digest(path, algorithm, memory)
    return "" if actual == digest else f"has the {algorithm} {actual[:12]}... instead of {digest[:12]}..."


def find_on_disk(archive: Mapping[str, Any], folders: Iterable[Path], memory: Path) -> Path | None:
    """The archive anywhere below one of the folders, known by checksum whatever its name, else by its name."""
    for folder in folders:
        for path in candidates(archive, folder):
            with suppress(OSError):  # somebody else's file that cannot be read is not the archive
                if not mismatch(path, archive, memory):
                    return path
    return None


def candidates(archive: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    """Files below a folder that are worth a look, its own first.

    These are files of the archive's name and, where a checksum is stated, those of its size, or of its kind where the
    size is unknown.
    """
    named = folder / archive["file"]
    if named.is_file():
        yield named
    has_digest = expected_digest(archive) is not None
    for path in _files_below(folder):
        if path == named:
            continue
        fits = path.stat().st_size == archive["size"] if "size" in archive else path.suffix == named.suffix
        if path.name == named.name or (has_digest and fits):
            yield path


def forget(path: Path, memory: Path) -> None:
    """Let the next question for a file's digest read its bytes again."""
    start = f"{path.resolve()}|"
    known = _recall(memory / MEMORY)
    if any(key.startswith(start) for key in known):
        _rewrite(memory / MEMORY, lambda known: {key: known[key] for key in known if not key.startswith(start)})


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


def move_remembered(source: Path, target: Path, memory: Path) -> Path:
    """Rename a file, over an older one too, and with it what is remembered of it, though a new name is a change."""
    known = _recall(memory / MEMORY)
    digests = {each: known.get(_key(source, each)) for each in ALGORITHMS}
    source.replace(target)
    for algorithm, digest in digests.items():
        if digest is not None:
            with suppress(OSError):
                _remember(memory / MEMORY, _key(target, algorithm), digest)
    return target


def _recall(memory: Path) -> dict[str, str]:
    try:
        content = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _remember(memory: Path, key: str, digest: str) -> None:
    _rewrite(memory, lambda known: {**known, key: digest})


def _rewrite(memory: Path, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    with FileLock(memory.with_suffix(".lock")):
        write_json(memory, change(_recall(memory)))
