"""The git repository of a project, if it has one of its own: a folder above it may belong to another."""

from __future__ import annotations

import subprocess
from pathlib import Path


def is_own(project: Path) -> bool:
    """Whether the project's files are in git: its ``dvc.yaml`` is, whatever folder the repository begins in."""
    return _git(project, "ls-files", "--error-unmatch", "dvc.yaml") is not None


def ignores(project: Path, *names: str) -> bool:
    """Whether a rule of the project, of a folder above it or of the person makes git leave out any of some files."""
    return _git(project, "check-ignore", "--no-index", *names) is not None


def commit(project: Path) -> str:
    """Commit of the project, marked ``-dirty`` where a file differs from it; ``unknown`` without git."""
    said = _git(project, "describe", "--always", "--dirty", "--abbrev=12") if is_own(project) else None
    return said or "unknown"


def _git(project: Path, *words: str) -> str | None:
    """What git says, ``None`` where it refuses or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()
