"""Pictures inside a page, so that it needs no other file."""

from __future__ import annotations

import base64
import io

from PIL import Image

QUALITY = 85  # of JPEG


def embedded(picture: Image.Image, side: int) -> str:
    """A picture as an address that holds the picture itself, its longer side at most ``side`` pixels."""
    shown = picture.copy()
    shown.thumbnail((side, side))
    stream = io.BytesIO()
    shown.save(stream, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"
