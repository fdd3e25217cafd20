"""Paths of the project's own files: its root, its episodes and its archives."""

from __future__ import annotations

import os
from pathlib import Path

from lookalike.base.text import in_shell

PACKAGE = Path(__file__).resolve().parents[1]  # that is imported: of the checkout, or installed
CHECKOUT = PACKAGE.parents[1]


class NoProjectError(ValueError):
    """Neither the working directory nor this package lies in a project."""


def project_root() -> Path:
    """The nearest folder, from the working directory upwards, that holds ``Snakefile`` and ``params/``.

    Outside of every project it is the checkout that this package is imported from, so that the data readers and the
    parameter files also work from a notebook in another folder.

    Raises:
        ValueError: if there is neither, or the working directory is gone.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise ValueError("the folder of this call has been removed: `cd` into the project's folder again") from None
    for folder in (here, *here.parents):
        if (folder / "Snakefile").is_file() and (folder / "params").is_dir():
            return folder
    if (CHECKOUT / "params").is_dir():
        return CHECKOUT
    raise NoProjectError(
        f"{here} is not in a project's folder, which holds Snakefile and params/; "
        "clone the repository, and call again in there"
    )


def project_or_here() -> Path:
    """The root of the project, or outside of every project the working directory.

    Raises:
        ValueError: if the working directory is gone.
    """
    try:
        return project_root()
    except NoProjectError:
        return Path.cwd()


def in_project(line: str) -> str:
    """A line of a shell that is right in the project's root, as it is typed in the working directory."""
    root = project_root()
    return line if Path.cwd() == root else f"cd {in_shell(root)} && {line}"


def episodes_of(manifest: str, ways: int) -> str:
    """File with the episodes of a data set whose queries show one or two classes: beside the manifest of its split."""
    return str(Path(manifest).with_suffix(".episodes.csv" if ways == 1 else ".two_way_episodes.csv"))


def archives_of(configured: str) -> str:
    """Folder of archives: ``$LOOKALIKE_ARCHIVES`` where it is set, else the configured ``archives``."""
    return os.environ.get("LOOKALIKE_ARCHIVES") or configured
