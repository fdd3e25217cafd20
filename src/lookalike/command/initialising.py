"""Lay out a project outside of a checkout: the workflow, its parameters, and the sources that both belong to."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from lookalike.paths import CARRIED, CHECKOUT, PACKAGE
from lookalike.text import counted, human_bytes

PACKAGES = ("lookalike", "figurines", "snakemake_logger_plugin_lookalike")
UNWANTED = ("__pycache__", CARRIED.name)


def initialise(folder: Path) -> int:
    """Make a project's folder of this package's own files, and print what to type next.

    The folder is complete or not there. DVC notices by ``src/`` that data sets are drawn by other code, and who wants
    to change that code finds it there; until it is installed from there, what is imported stays this package.

    Args:
        folder: a new folder, or an empty one.

    Returns:
        0.

    Raises:
        ValueError: if something is there already, or nothing to make the folder in.
        OSError: if it cannot be written.
    """
    target = folder.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{folder} is there and not empty, a project is laid out in a new folder")
    if not target.parent.is_dir():
        raise ValueError(f"{folder}: there is no folder {target.parent}")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        for source, place in _sources():
            _copy(source, unfinished / place)
        unfinished.replace(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    files = [path for path in target.rglob("*") if path.is_file()]
    size = human_bytes(sum(path.stat().st_size for path in files))
    print(f"{folder}: a project of {counted(len(files), 'file')}, {size}. Next:")
    print(f"    cd {folder}\n    snakemake --cores all --resources gpu=1 tables")
    print("Code in src/ counts once it is installed from there: uv pip install -e '.[workflow]'")
    return 0


def parts(root: Path) -> list[str]:
    """What a project consists of beside its sources: what pyproject.toml, itself a part, has the wheel carry.

    Args:
        root: a checkout, or what a wheel carries.
    """
    wheel = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    return list(wheel["force-include"])


def _sources() -> Iterator[tuple[Path, str]]:
    """What is copied, and where to."""
    root = CARRIED if CARRIED.is_dir() else CHECKOUT
    yield from ((root / part, part) for part in parts(root))
    yield from ((PACKAGE.parent / package, f"src/{package}") for package in PACKAGES)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*UNWANTED))
    else:
        shutil.copy2(source, target)
