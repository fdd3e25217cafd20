"""Manifests: the table of a split as a file that determines the data used."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from lookalike.base.files import file_digest, replacing
from lookalike.workflow.data.roles import LEFT_OUT

_TEXT = ("name", "path", "role", "split", "mask", "sha256", "mask_sha256", "reason")
_BOX = ("box_x", "box_y", "box_width", "box_height")


def with_file_hashes(frame: pd.DataFrame, root: Path, *, threads: int = 8) -> pd.DataFrame:
    """The table of a split with ``bytes`` and ``sha256`` of each picture, and ``mask_sha256`` where it has masks.

    Two manifests with these columns are equal only if every byte of the pictures is. Reading takes as long as the disk
    needs: seconds for CUB, minutes for mini-iNaturalist.

    Raises:
        ValueError: naming the first picture that takes part and is empty.
    """
    hashed = frame.assign(bytes=frame["path"].map(lambda path: (root / path).stat().st_size).astype("int64"))
    empty = hashed.loc[(hashed["bytes"] == 0) & (hashed["role"] != LEFT_OUT), "path"]
    if len(empty):
        raise ValueError(f"{root / empty.iloc[0]} is empty")
    with ThreadPoolExecutor(threads) as pool:
        for column, name in (("path", "sha256"), ("mask", "mask_sha256")):
            if column in hashed:
                hashed[name] = list(pool.map(lambda path: file_digest(root / path), hashed[column]))
    return hashed


def write_manifest(frame: pd.DataFrame, path: Path, root: Path | None = None) -> str:
    """Write the rows, sorted, as CSV; the file appears when it is whole.

    Args:
        frame: the table of a split.
        path: file of the CSV.
        root: the data set's root, to add ``with_file_hashes``; without it the table is written as it is.

    Returns:
        The manifest's hash, as from ``manifest_hash``.

    Raises:
        ValueError: as ``with_file_hashes``; nothing is written then.
    """
    rows = frame if root is None else with_file_hashes(frame, root)
    with replacing(path) as temporary:
        temporary.write_bytes(_csv(rows))
    return manifest_hash(rows)


def check_listable(paths: pd.Series) -> None:
    """Refuse paths that a manifest would not hold as they are.

    Raises:
        ValueError: naming the first one.
    """
    # csv puts a carriage return in quotes from Python 3.13 on; without quotes it is the end of a line to pandas.
    odd = paths[paths.str.contains(r"[\\\r]", regex=True)]
    if len(odd):
        raise ValueError(f"path {odd.iloc[0]!r}: lists hold neither a backslash nor a carriage return; rename it")


def read_manifest(path: Path) -> pd.DataFrame:
    """The table of a split from its manifest, with the types that ``read_split`` gives.

    Raises:
        ValueError: if the file is missing or is no manifest.
    """
    if not path.is_file():
        raise ValueError(f"manifest {path} does not exist")
    frame = pd.read_csv(path, dtype=dict.fromkeys((*_TEXT, *_BOX), str), keep_default_na=False)
    absent = {"path", "label", "role"} - set(frame.columns)
    if absent:
        raise ValueError(f"{path} is no manifest: it has no column {sorted(absent)[0]}")
    # By way of text, because the parser's own numbers may be off in their last digit.
    return frame.astype({column: "float64" for column in _BOX if column in frame})


def altered_files(frame: pd.DataFrame, root: Path, *, threads: int = 8) -> list[str]:
    """Faults of the files that a manifest lists: one line for each that is missing or has other bytes.

    Masks are compared too. A manifest without ``sha256`` tells missing files only.
    """
    listed = {
        path: digest
        for column, hashes in (("path", "sha256"), ("mask", "mask_sha256"))
        if column in frame
        for path, digest in zip(frame[column], frame.get(hashes, [None] * len(frame)), strict=True)
    }

    def fault(path: str) -> str:
        try:
            actual = None if listed[path] is None else file_digest(root / path)
        except OSError as error:
            return f"{root / path} cannot be read: {error.strerror}"
        if actual != listed[path]:
            return f"{root / path} has other bytes than its manifest says"
        return "" if (root / path).is_file() else f"{root / path} does not exist"

    with ThreadPoolExecutor(threads) as pool:
        return [line for line in pool.map(fault, sorted(listed)) if line]


def manifest_hash(frame: pd.DataFrame) -> str:
    """SHA-256 of the manifest as it is written: the same for the same rows in any order."""
    return hashlib.sha256(_csv(frame)).hexdigest()


def _csv(frame: pd.DataFrame) -> bytes:
    rows = frame.sort_values(["role", "path", "label"], ignore_index=True)
    return rows.to_csv(index=False, lineterminator="\n").encode()
