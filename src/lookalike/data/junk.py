"""What desktop systems leave in folders and archives, and what counts as a picture file."""

from __future__ import annotations

from os.path import splitext
from pathlib import PurePath

IMAGE_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}  # compared in lower case
)
_JUNK = frozenset({"__macosx", ".ds_store", "thumbs.db", "desktop.ini"})


def is_junk(path: PurePath | str) -> bool:
    """Whether a part of the relative path is macOS' or Windows' own (``__MACOSX``, ``._x.jpg``, ``Thumbs.db``)."""
    return any(part.startswith("._") or part.lower() in _JUNK for part in str(path).split("/"))


def is_image(name: str) -> bool:
    """Whether the file name is that of a picture and not of a desktop system's copy of one."""
    # pathlib takes ten times as long, which counts with a hundred thousand names
    return splitext(name)[1].lower() in IMAGE_SUFFIXES and not is_junk(name)  # noqa: PTH122
