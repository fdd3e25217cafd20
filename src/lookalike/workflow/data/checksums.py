"""Digests of files. Those of archives are recorded, so that gigabytes are read once."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from lookalike.base.files import file_digest, state_of, write_json
from lookalike.base.paths import project_root
from lookalike.workflow.data.archives import is_archive
from lookalike.workflow.settings.datasets import Archive

RECORD = ".checksums.json"
ALGORITHMS = ("sha256", "md5")  # the strongest first
_ARCHIVE_NAME = re.compile(r"\.(tar|tgz|zip|tar\.\w+)$")


def weights_digest(weights: str | None) -> str | None:
    """SHA-256 of a weights file, the name itself for torchvision's, ``None`` without weights."""
    if weights is None:
        return None
    path = project_root() / weights
    return file_digest(path) if path.is_file() else weights


def recorded_digest(path: Path, algorithm: str, folder: Path, *, anew: bool = False) -> str:
    """As ``file_digest``; a file that is unchanged since its digest was recorded is not read again.

    Args:
        path: the file; its size and times tell whether it has changed.
        algorithm: ``sha256`` or ``md5``.
        folder: folder of the record ``.checksums.json``. One that cannot be written to records nothing.
        anew: read the file, whatever is recorded.
    """
    known = _read(folder / RECORD).get(str(path.resolve()), {})
    if not anew and (known.get("state"), known.get("algorithm")) == (_state(path), algorithm):
        return str(known["digest"])
    digest = file_digest(path, algorithm)
    record_digest(path, algorithm, digest, folder)
    return digest


def record_digest(path: Path, algorithm: str, digest: str, folder: Path) -> None:
    """Record the digest of a file, in a folder as of ``recorded_digest``."""
    record, entry = folder / RECORD, {"state": _state(path), "algorithm": algorithm, "digest": digest}
    with suppress(OSError), FileLock(record.with_suffix(".lock")):
        write_json(record, _read(record) | {str(path.resolve()): entry})


def expected_digest(archive: Archive) -> tuple[str, str] | None:
    """Algorithm and digest of an archive's specification, the strongest stated; ``None`` where none is published."""
    return next(((name, digest) for name in ALGORITHMS if (digest := getattr(archive, name))), None)


def mismatch(path: Path, archive: Archive, folder: Path, *, anew: bool = False) -> str:
    """Difference between a file and the archive of a specification, empty where there is none.

    Args:
        path: the file.
        archive: ``file``, and ``size``, ``sha256`` or ``md5`` where they are published.
        folder: folder of the record, as of ``recorded_digest``.
        anew: read the file, whatever is recorded.
    """
    if fault := size_fault(path, archive):
        return fault
    if (expected := expected_digest(archive)) is None:
        return ""
    algorithm, digest = expected
    actual = recorded_digest(path, algorithm, folder, anew=anew)
    return "" if actual == digest else f"has the {algorithm} {actual[:12]}... instead of {digest[:12]}..."


def size_fault(path: Path, archive: Archive) -> str:
    """As ``mismatch``, without reading the file: by its size, or without a published digest by its kind."""
    size = path.stat().st_size
    if archive.size not in (None, size):
        return f"has {size} bytes instead of {archive.size}"
    if expected_digest(archive) is None and _ARCHIVE_NAME.search(archive.file) and not is_archive(path):
        return "is no whole archive"
    return ""


def _state(path: Path) -> list[int]:
    return list(state_of(path.stat()))


def _read(record: Path) -> dict[str, Any]:
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and all(isinstance(each, dict) for each in content.values()) else {}
