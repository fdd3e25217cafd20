"""Names of the files that desktop systems leave in folders and archives, and of picture files."""

from __future__ import annotations

from functools import cache
from os.path import splitext
from pathlib import PurePath

from PIL import Image

HEIF_SUFFIXES = frozenset({".heic", ".heics", ".heif", ".heifs", ".hif"})  # read where pillow-heif is installed
# Pictures of cameras and drawing programs that are not read. They count as pictures, so that none vanishes without a
# word. Of many raw files Pillow would take the small preview in front for the picture.
UNREAD_SUFFIXES = frozenset(
    {
        *(".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".iiq", ".kdc", ".mef", ".mos", ".mrw"),
        *(".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f"),
        *(".exr", ".jxl", ".jxr", ".svg", ".svgz", ".xcf"),
    }
)
_JUNK = frozenset({"__macosx", ".ds_store", "thumbs.db", "desktop.ini"})


def is_junk(path: PurePath | str) -> bool:
    """Whether a part of the relative path is macOS' or Windows' own (``__MACOSX``, ``._x.jpg``, ``Thumbs.db``)."""
    return any(part.startswith("._") or part.lower() in _JUNK for part in str(path).split("/"))


def is_image(name: str) -> bool:
    """Whether the file name is that of a picture, read or not, and not of a desktop system's copy of one."""
    # pathlib takes ten times as long, which counts with a hundred thousand names
    return splitext(name)[1].lower() in image_suffixes() and not is_junk(name)  # noqa: PTH122


@cache
def image_suffixes() -> frozenset[str]:
    """Ends of the names of pictures, in lower case with their dot.

    They are those of Pillow's formats of a media type ``image/``. That leaves out what Pillow opens with other
    programs or cannot show (PostScript, PDF, films, stores of measurements), and what no photograph is kept in.
    """
    kinds = Image.registered_extensions()  # which fills the other table, too
    of_pillow = frozenset(name for name, kind in kinds.items() if Image.MIME.get(kind, "").startswith("image/"))
    return of_pillow | HEIF_SUFFIXES | UNREAD_SUFFIXES
