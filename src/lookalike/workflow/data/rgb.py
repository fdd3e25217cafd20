"""A picture in RGB, whatever it is stored as.

An export holds what follows the imports as it stands, so that it sees a picture as the model does: it wants numpy,
Pillow and the standard library alone.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from PIL import ExifTags, Image, TiffImagePlugin

# What Pillow raises for broken files, and its readers of some formats by their own mistakes.
BROKEN = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError),
    *(OverflowError, RuntimeError, struct.error, zlib.error, Image.DecompressionBombError),
)
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # by what a camera has noted
_BITS = ExifTags.Base.BitsPerSample
_NOTES = ("exif", "xmp", "XML:com.adobe.xmp")  # where the orientation is noted


def as_rgb(picture: Image.Image) -> Image.Image:
    """A picture in RGB, turned as its camera has noted: 12 or 16 bits brought to 8, the transparent laid over white.

    Differs: the papers' code leaves pictures as they are stored. None of CUB has such a note.

    Raises:
        ValueError: for pixels whose range nobody states, such as 32 bits or floating point.
    """
    white = _white(picture)
    picture = _upright(picture)
    if white is not None:  # Pillow would cut off all above 255
        picture = Image.fromarray((np.asarray(picture) / (white / 255)).round().astype(np.uint8))
    elif picture.mode in ("I", "F"):
        raise ValueError(f"pixels of mode {picture.mode} have no stated range; save it with 8 or 16 bits")
    if picture.has_transparency_data:
        seen = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
    return picture.convert("RGB")


def _white(picture: Image.Image) -> int | None:
    """The largest number that a grey picture of more than 8 bits can hold, ``None`` of others and of unknown ranges."""
    if picture.mode.startswith("I;16"):
        bits = picture.tag_v2.get(_BITS, (16,)) if isinstance(picture, TiffImagePlugin.TiffImageFile) else (16,)
        return int(2 ** bits[0] - 1)
    # Of the kinds that Pillow opens in mode I, PGM alone states its range, to which Pillow has brought it then.
    return 2**16 - 1 if picture.mode == "I" and picture.format == "PPM" else None


def _upright(picture: Image.Image) -> Image.Image:
    picture.load()  # a TIFF is turned by that, and loses its note
    try:
        orientation = picture.getexif().get(ExifTags.Base.Orientation)
    except BROKEN:  # a broken note says nothing
        return picture
    if orientation not in _TURNS:
        return picture
    # Pillow's own function writes the notes anew, and fails where one of the others is odd.
    turned = picture.transpose(_TURNS[orientation])
    for note in _NOTES:  # or it would be turned again
        turned.info.pop(note, None)
    return turned
