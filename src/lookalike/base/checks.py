"""Refusals with the remedy, in one wording for names, keys, numbers and missing libraries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

MANY = 40  # names that a message still lists


def require_known(where: str, value: object, known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones.

    Args:
        where: option, or file and key, at which the name was given.
        value: the name.
        known: what would be right.

    Raises:
        ValueError: naming the place, the nearest name and all names, or of very many the nearest ones.
    """
    names = sorted(known)
    if value not in names:
        near = difflib.get_close_matches(str(value), names, n=8, cutoff=0)
        hint = f", did you mean {near[0]!r}?" if near else "."
        listed = f"Known: {', '.join(names) or 'none'}"
        if len(names) > MANY:
            listed = f"Nearest of {len(names)}: {', '.join(near)}"
        raise ValueError(f"{where}: unknown {value!r}{hint} {listed}")


def require_keys(where: str, keys: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that does not exist.

    Raises:
        ValueError: as `require_known`, for the first of them.
    """
    names = list(known)
    for key in sorted(keys):
        require_known(where, key, names)


def require_utf8(name: str) -> None:
    """Refuse a name that text files cannot hold, as a disk may have one.

    Raises:
        ValueError: naming it.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!a}: the name is no UTF-8, which files are written in; rename it") from None


def require_own_labels(where: str, rows: Iterable[str]) -> None:
    """Refuse rows of which two have one label.

    Args:
        where: file and key of the rows.
        rows: label of each, and what else tells it from others.

    Raises:
        ValueError: naming the place and the first label that stands twice.
    """
    seen: set[str] = set()
    for row in rows:
        if row in seen:
            raise ValueError(f"{where}: two rows {row}; each needs a label of its own")
        seen.add(row)


def require_range(name: str, index: Tensor, end: int) -> None:
    """Refuse an index outside ``[0, end)``; one on a device is not looked at, as that would wait for the device.

    Raises:
        ValueError: naming the smallest and the largest index.
    """
    if index.device.type == "cpu" and index.numel() and not 0 <= int(index.min()) <= int(index.max()) < end:
        raise ValueError(f"{name} holds {int(index.min())} to {int(index.max())}, it must stay in [0, {end - 1}]")


def require_new_folder(where: str, folder: Path) -> None:
    """Refuse a folder that holds something already.

    Args:
        where: option at which it was given.
        folder: that is to be made.

    Raises:
        ValueError: naming it.
    """
    kind = "is a link" if folder.is_symlink() else "is where you are" if folder.resolve() == folder.cwd() else ""
    if not kind and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        kind = "holds files" if folder.is_dir() else "is a file"
    if kind:
        raise ValueError(f"{where} {folder}: {kind}; name a new folder")


def require_positive(name: str, value: float) -> None:
    """Refuse a value that is not above 0.

    Raises:
        ValueError: naming it.
    """
    if value <= 0:
        raise ValueError(f"{name}={value} must be above 0")


def workflow_extra() -> AbstractContextManager[None]:
    """Guard imports of the libraries of the extra ``workflow``, as `from_extra`."""
    return from_extra("workflow")


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Guard imports of the libraries of an extra.

    Raises:
        ModuleNotFoundError: with one line that names the missing library and how to install the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error.name} is not installed: this needs lookalike's extra `{extra}`; in the project's folder: "
            f"uv pip install '.[{extra}]'",
            name=error.name,
        ) from None
