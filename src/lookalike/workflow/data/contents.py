"""Contents of a user's own folder, by the names and the bytes of its files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lookalike.base.files import file_digest, state_of, write_json
from lookalike.workflow.data.junk import is_junk

READ_AT_ONCE = 8


def contents_digest(root: Path, record: Path) -> str:
    """SHA-256 over names and contents of all files below a folder, but hidden ones and those of desktop systems.

    A file is read again only where its size or a time of it has changed. A file that cannot be read counts by its name.

    Args:
        root: the folder; links are followed, a folder that is met again is not entered.
        record: JSON with the folder and what is known of each file; written where that has changed.
    """
    before, paths = _recorded(record), list(_files(root, "", set()))
    known = before.get("files", {})

    def entry(name: str) -> tuple[str, list[Any]]:
        path = root / name
        try:
            state = list(state_of(path.stat()))
            if known.get(name, [])[:-1] == state:
                return name, known[name]
            return name, [*state, file_digest(path)]
        except OSError:
            return name, [None]

    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        found = dict(pool.map(entry, paths))
    if before != (now := {"root": str(root), "files": found}):
        write_json(record, now)
    told = hashlib.sha256()
    for name, facts in sorted(found.items()):
        told.update(os.fsencode(f"{facts[-1]}  {name}\n"))
    return told.hexdigest()


def _files(root: Path, name: str, entered: set[tuple[int, int]]) -> Iterator[str]:
    """Names below the root of files, and with a slash behind them of folders that were entered before."""
    try:
        with os.scandir(root / name) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        below = f"{name}{entry.name}"
        if is_junk(entry.name) or entry.name.startswith("."):
            continue
        if not entry.is_dir():
            yield below
            continue
        found = entry.stat()
        if (found.st_dev, found.st_ino) in entered:
            yield f"{below}/"
        else:
            entered.add((found.st_dev, found.st_ino))
            yield from _files(root, f"{below}/", entered)


def root_of(record: Path) -> Path | None:
    """The folder that a record of `contents_digest` is of, ``None`` where there is none."""
    root = _recorded(record).get("root")
    return Path(root) if root else None


def _recorded(record: Path) -> dict[str, Any]:
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    files = content.get("files") if isinstance(content, dict) else None
    return content if isinstance(files, dict) and all(isinstance(each, list) for each in files.values()) else {}
