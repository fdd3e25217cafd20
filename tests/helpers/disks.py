"""Disks that are full before long."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """An empty file system of so many bytes (``64k``) in a new folder; skips the test where none can be mounted."""
    folder.mkdir()
    if shutil.which("mount") is None or not mount(folder, size):
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def mount(folder: Path, size: str, *options: str) -> bool:
    """Mount a file system in memory, or with ``remount`` give one another size; whether that is allowed."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join([*options, f"size={size}"]), "tmpfs", folder]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
